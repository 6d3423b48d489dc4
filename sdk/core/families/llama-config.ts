import type { RopeParams } from '../decoder/rope.ts'
import type { JsonFields } from '../model/json-fields.ts'
import { flag, headsOf, layerCountOf, sizeOf, vocabOf, type Heads } from './family.ts'
import { parseRope, type RopeOptions } from './parse-rope.ts'

/** The sizes of a decoder that is built like Llama; many families share them. */
export type LlamaConfig = Heads & {
  readonly hiddenSize: number
  readonly intermediateSize: number
  readonly layerCount: number
  readonly vocabSize: number
  readonly contextLength: number
  readonly normEpsilon: number
  readonly tiedEmbedding: boolean
  readonly rope: RopeParams
}

/** What most families built like Llama have where a field is absent. */
export const LLAMA_DEFAULTS = {
  num_key_value_heads: null,
  head_dim: null,
  hidden_act: 'silu',
  rms_norm_eps: 1e-6,
  rope_theta: 10_000,
  tie_word_embeddings: false,
  eos_token_id: null,
} as const

/** @throws CrowdError model-invalid, model-unsupported (the field is named) */
export function llamaConfig(
  fields: JsonFields,
  contextLength: number,
  rope: Pick<RopeOptions, 'layerType' | 'partial'> = {},
): LlamaConfig {
  const hiddenSize = sizeOf(fields, 'hidden_size')
  const heads = headsOf(fields, hiddenSize)
  return {
    ...heads,
    hiddenSize,
    intermediateSize: sizeOf(fields, 'intermediate_size'),
    layerCount: layerCountOf(fields),
    vocabSize: vocabOf(fields),
    contextLength,
    normEpsilon: fields.number('rms_norm_eps'),
    tiedEmbedding: flag(fields, 'tie_word_embeddings'),
    rope: parseRope(fields, { ...rope, headSize: heads.headSize, contextLength }),
  }
}
