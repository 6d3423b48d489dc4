import type { SamplingDefaults } from '../../sdk/core/sampling/generation-config.ts'
import type { SamplingParams } from '../../sdk/core/sampling/params.ts'
import type { HonouredName } from './fields.ts'
import { isObject, numberFrom, refuse, wholeFrom, type Reader } from './read-value.ts'

/** The value of an honoured field; undefined where it is absent or null. */
export type Take = <T>(name: HonouredName, reader: Reader<T>) => T | undefined

/** Smallest share: keeps the best token only. 0 itself isn't a share. */
const TOP_P_LEAST = 1e-9
const BIASES_MAX = 1_024

/** How tokens are chosen, with the model's defaults, else with OpenAI's. @throws FieldError */
export function readSampling(
  take: Take,
  defaults: SamplingDefaults,
): Omit<SamplingParams, 'topLogprobs'> {
  return { ...readShape(take, defaults), ...readPenalties(take, defaults), seed: readSeed(take) }
}

function readShape(
  take: Take,
  defaults: SamplingDefaults,
): Pick<SamplingParams, 'temperature' | 'topP' | 'topK' | 'minP'> {
  const { temperature = 1, topP = 1, topK = 0, minP = 0 } = defaults
  return {
    temperature: take('temperature', numberFrom(0, 2)) ?? temperature,
    topP: Math.max(take('top_p', numberFrom(0, 1)) ?? topP, TOP_P_LEAST),
    topK: Math.max(take('top_k', wholeFrom(-1, 1_000_000)) ?? topK, 0),
    minP: take('min_p', numberFrom(0, 1)) ?? minP,
  }
}

type Penalties = Pick<
  SamplingParams,
  'presencePenalty' | 'frequencyPenalty' | 'repetitionPenalty' | 'logitBias'
>

function readPenalties(take: Take, defaults: SamplingDefaults): Penalties {
  return {
    presencePenalty: take('presence_penalty', numberFrom(-2, 2)) ?? 0,
    frequencyPenalty: take('frequency_penalty', numberFrom(-2, 2)) ?? 0,
    repetitionPenalty:
      take('repetition_penalty', numberFrom(0.01, 10)) ?? defaults.repetitionPenalty ?? 1,
    logitBias: take('logit_bias', readBiases) ?? [],
  }
}

/** The ring's seeds have 32 bits: the low ones of a larger number, two's complement below zero. */
function readSeed(take: Take): number {
  const seed = take('seed', wholeFrom(Number.MIN_SAFE_INTEGER, Number.MAX_SAFE_INTEGER))
  return Number(BigInt.asUintN(32, BigInt(seed ?? 0)))
}

const readBiases: Reader<SamplingParams['logitBias']> = (value, param) => {
  if (!isObject(value)) return refuse(param, 'an object of token ids and numbers', value)
  const entries = Object.entries(value)
  if (entries.length > BIASES_MAX)
    return refuse(param, `at most ${BIASES_MAX} entries`, entries.length)
  return entries.map(([key, bias]) => {
    if (!/^\d{1,8}$/.test(key) || Number(key) > 10_000_000)
      return refuse(param, 'an object whose keys are token ids', key)
    return [Number(key), numberFrom(-100, 100)(bias, `${param}.${key}`)] as const
  })
}
