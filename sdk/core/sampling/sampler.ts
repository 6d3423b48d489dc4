import { CrowdError } from '../errors.ts'
import { createCandidateHeap } from './candidate-heap.ts'
import type { SampledToken, SamplingParams } from './params.ts'
import { applyPenalties } from './penalties.ts'
import { randomAt } from './random.ts'

/** Alternatives reported with a token, at most: what the OpenAI API allows. */
export const TOP_LOGPROBS_MAX = 20

export type SampleInput = {
  /** f32 [V], finite; not changed. */
  readonly logits: Float32Array
  readonly params: SamplingParams
  /** Prompt and answer so far; may be empty when no penalty is on. */
  readonly history: Int32Array
  /** Where the answer begins in `history`. */
  readonly promptLength: number
  /** The position that the chosen token will have. */
  readonly position: number
}

export type Sampler = {
  /** @throws CrowdError non-finite */
  sample(input: SampleInput): SampledToken
}

/**
 * Chooses tokens. The order is the one of Hugging Face's generation: logit bias, repetition penalty, then
 * the two OpenAI penalties (presence, frequency), temperature, top-k, top-p, min-p, draw. Top-k keeps ties
 * with the k-th token; top-p keeps the smallest set of best tokens whose share reaches p, after top-k.
 * Scratch memory of vocabulary size is made once and reused.
 *
 *     const sampler = createSampler(vocabSize)
 *     const { token } = sampler.sample({ logits, params, history, promptLength, position })
 */
export function createSampler(vocabSize: number): Sampler {
  const scores = new Float32Array(vocabSize)
  const counts = new Int32Array(vocabSize)
  const heap = createCandidateHeap(scores)

  function sample(input: SampleInput): SampledToken {
    const { logits, params } = input
    if (logits.length !== vocabSize) {
      throw new CrowdError('internal', `${logits.length} logits, expected ${vocabSize}`)
    }
    scores.set(logits)
    applyPenalties({ scores, counts, ...input })
    const best = argmax(scores)
    const token =
      params.temperature > 0 ? draw(best, params, randomAt(params.seed, input.position)) : best
    const logTotal = logSumExp(logits)
    return {
      token,
      logprob: at(logits, token) - logTotal,
      top: topTokens(logits, logTotal, Math.min(params.topLogprobs, TOP_LOGPROBS_MAX)),
    }
  }

  function draw(best: number, params: SamplingParams, random: number): number {
    const top = at(scores, best)
    const weightOf = (token: number): number =>
      Math.exp((at(scores, token) - top) / params.temperature)
    if (params.topK === 0 && params.topP >= 1) {
      return pick({ count: vocabSize, tokenAt: (i) => i }, weightOf, params.minP, random)
    }
    heap.start()
    const kept = params.topK > 0 ? heap.takeBest(params.topK) : vocabSize
    const count = params.topP < 1 ? countForShare(kept, weightOf, params.topP) : kept
    return pick({ count, tokenAt: heap.tokenAt }, weightOf, params.minP, random)
  }

  /** How many of the best candidates reach the share of the weight of the `kept` ones. */
  function countForShare(kept: number, weightOf: (token: number) => number, share: number): number {
    const everyToken = kept === vocabSize
    let total = 0
    for (let i = 0; i < kept; i++) total += weightOf(everyToken ? i : heap.tokenAt(i))
    let sum = 0
    for (let i = 0; i < kept; i++) {
      sum += weightOf(heap.tokenAt(i))
      if (sum >= share * total) return i + 1
    }
    return kept
  }

  return { sample }
}

type Candidates = { readonly count: number; readonly tokenAt: (index: number) => number }

/** Draws one candidate by weight, leaving out those under min-p. The best one's weight is 1. */
function pick(
  candidates: Candidates,
  weightOf: (token: number) => number,
  minP: number,
  random: number,
): number {
  const { count, tokenAt } = candidates
  const kept = (weight: number): boolean => weight > 0 && weight >= minP
  let total = 0
  for (let i = 0; i < count; i++) {
    const weight = weightOf(tokenAt(i))
    if (kept(weight)) total += weight
  }
  let left = random * total
  let last = -1
  for (let i = 0; i < count; i++) {
    const token = tokenAt(i)
    const weight = weightOf(token)
    if (!kept(weight)) continue
    last = token
    left -= weight
    if (left < 0) return token
  }
  // Rounding may leave a crumb after the last candidate.
  if (last < 0) throw new CrowdError('non-finite', 'no token has a probability')
  return last
}

/** Index of the first maximum. @throws CrowdError non-finite */
export function argmax(values: Float32Array): number {
  let best = -1
  let bestValue = -Infinity
  for (let index = 0; index < values.length; index++) {
    const value = at(values, index)
    if (value > bestValue) {
      best = index
      bestValue = value
    }
  }
  if (best < 0 || bestValue === Infinity) {
    throw new CrowdError('non-finite', 'the logits are not finite numbers')
  }
  return best
}

function logSumExp(logits: Float32Array): number {
  const top = at(logits, argmax(logits))
  let sum = 0
  for (const logit of logits) sum += Math.exp(logit - top)
  if (!Number.isFinite(sum)) throw new CrowdError('non-finite', 'a logit is not a finite number')
  return top + Math.log(sum)
}

/** The `count` likeliest tokens, best first, equal ones by id. */
function topTokens(logits: Float32Array, logTotal: number, count: number): SampledToken['top'] {
  const best: { token: number; logprob: number }[] = []
  if (count <= 0) return best
  for (let token = 0; token < logits.length; token++) {
    const logprob = at(logits, token) - logTotal
    const worst = best[best.length - 1]
    if (best.length === count && worst !== undefined && logprob <= worst.logprob) continue
    if (best.length === count) best.pop()
    let place = best.length
    while (place > 0 && (best[place - 1]?.logprob ?? Infinity) < logprob) place--
    best.splice(place, 0, { token, logprob })
  }
  return best
}

function at(values: Float32Array, index: number): number {
  return values[index] ?? NaN
}
