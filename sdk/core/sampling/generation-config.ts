import { isRecord } from '../model/json-fields.ts'
import type { SamplingParams } from './params.ts'

/** How a model's makers want its tokens chosen, where a request says nothing. */
export type SamplingDefaults = Partial<
  Pick<SamplingParams, 'temperature' | 'topP' | 'topK' | 'minP' | 'repetitionPenalty'>
>

/** Smallest share: keeps the best token only. */
const TOP_P_LEAST = 1e-9

/**
 * Reads Hugging Face's generation_config.json. Its sampling settings count only beside `do_sample: true`, as
 * in Transformers. What is missing, no number or out of bounds is left out.
 * @param json the parsed file; undefined where the model has none
 */
export function parseSamplingDefaults(json: unknown): SamplingDefaults {
  if (!isRecord(json) || json['do_sample'] !== true) return {}
  const read = <Name extends string>(
    field: string,
    name: Name,
    isValid: (value: number) => boolean,
  ): Partial<Record<Name, number>> => {
    const value = json[field]
    // Cast: a computed key widens to string.
    return typeof value === 'number' && isValid(value)
      ? ({ [name]: value } as Record<Name, number>)
      : {}
  }
  return {
    ...read('temperature', 'temperature', (value) => value >= 0 && value <= 2),
    ...read('top_p', 'topP', (value) => value >= TOP_P_LEAST && value <= 1),
    ...read(
      'top_k',
      'topK',
      (value) => Number.isInteger(value) && value >= 0 && value <= 1_000_000,
    ),
    ...read('min_p', 'minP', (value) => value >= 0 && value <= 1),
    ...read('repetition_penalty', 'repetitionPenalty', (value) => value > 0 && value <= 10),
  }
}
