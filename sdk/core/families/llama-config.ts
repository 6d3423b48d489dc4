import type { RopeParams } from '../decoder/rope.ts'
import type { JsonFields } from '../model/json-fields.ts'
import { flag, headsOf, layerCountOf, sizeOf, vocabOf, type Heads } from './family.ts'
import { parseRope } from './parse-rope.ts'

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

/** @throws CrowdError model-invalid, model-unsupported (the field is named) */
export function llamaConfig(
  fields: JsonFields,
  contextLength: number,
  defaults: { readonly tied?: boolean; readonly layerType?: string } = {},
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
    tiedEmbedding: flag(fields, 'tie_word_embeddings', defaults.tied ?? false),
    rope: parseRope(fields, {
      headSize: heads.headSize,
      contextLength,
      ...(defaults.layerType === undefined ? {} : { layerType: defaults.layerType }),
    }),
  }
}
