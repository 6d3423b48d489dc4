import { parseDecoder } from '../core/families/parse-decoder.ts'
import { isRecord } from '../core/model/json-fields.ts'
import type { Block, Manifest, WeightDtype } from '../core/model/manifest.ts'
import { planModel } from '../core/model/plan-model.ts'
import type { PlannedSource } from './plan-source.ts'

/** What can be said of a model before its weights are read: a manifest without pieces. */
export type PreviewedModel = Omit<Manifest, 'format' | 'id' | 'revision' | 'files' | 'eosTokenIds'>

/**
 * Plans a model's blocks from its config.json alone, so that what can't be cut is refused before it's downloaded.
 * @throws CrowdError model-invalid, model-unsupported
 */
export function previewConfig(
  json: unknown,
  dtype: WeightDtype,
  contextLength?: number,
): PreviewedModel {
  const decoder = parseDecoder(json, undefined, contextLength)
  return previewPlans({ decoder, dtype, plans: planModel(decoder, dtype) })
}

/** The blocks that importing would make. */
export function previewPlans(
  planned: Pick<PlannedSource, 'decoder' | 'dtype' | 'plans'>,
): PreviewedModel {
  const { decoder, dtype, plans } = planned
  const { architecture, hiddenSize, headCount, kvHeadCount, headSize, vocabSize } = decoder
  const blocks = plans.map(({ kind, dataBytes, f32Bytes }): Block => ({
    kind,
    dataBytes,
    f32Bytes,
    graph: null,
    data: [],
  }))
  const layerCount = decoder.layers.length
  const sizes = { hiddenSize, layerCount, headCount, kvHeadCount, headSize, vocabSize }
  return { architecture, dtype, ...sizes, contextLength: decoder.contextLength, blocks }
}

export type ModelTraits = {
  /** Experts of a mixture; 0 = none. */
  readonly experts: number
  /** Tokens that a layer looks back at most; 0 = all. */
  readonly slidingWindow: number
  readonly tied: boolean
  /** What the model was made for, whatever context it's given here. */
  readonly ownContext: number | null
}

/** Read leniently: only shown. */
export function readTraits(config: unknown): ModelTraits {
  const outer = isRecord(config) ? config : {}
  const fields = isRecord(outer['text_config']) ? outer['text_config'] : outer
  const number = (...names: string[]): number => {
    const value = names.map((name) => fields[name]).find((one) => typeof one === 'number')
    return typeof value === 'number' && Number.isInteger(value) && value > 0 ? value : 0
  }
  const isWindowOff = fields['use_sliding_window'] === false
  return {
    experts: number('num_local_experts', 'num_experts', 'n_routed_experts'),
    slidingWindow: isWindowOff ? 0 : number('sliding_window'),
    tied: fields['tie_word_embeddings'] === true,
    ownContext: number('max_position_embeddings', 'n_positions', 'n_ctx') || null,
  }
}
