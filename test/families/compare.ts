import * as ort from 'onnxruntime-node'
import type { Decoder as ModelDecoder } from '../../sdk/core/decoder/decoder.ts'
import { baseNames } from '../../sdk/core/families/base-names.ts'
import { parseDecoder } from '../../sdk/core/families/parse-decoder.ts'
import type { WeightDtype } from '../../sdk/core/model/manifest.ts'
import { openModelSource } from '../../sdk/import/model-source.node.ts'
import type { ModelSource } from '../../sdk/import/model-source.ts'
import { openBlocks, openWhole, worstDifference, type Decoder } from '../support/chained-blocks.ts'
import { createTestModel, type TestModel } from '../support/models.ts'
import type { Reference } from './reference.ts'

/** One row of `npm run families`. */
export type FamilyRow = {
  readonly family: string
  readonly source: Reference['source'] | 'onnx'
  /** What the model was kept as, or how its exporter names it. */
  readonly dtype: string
  /** Against the reference, over all tokens of prompt and answer. */
  readonly maxLogitError: number
  /** Share of the answer's tokens that the reference chooses too, each after the reference's text. */
  readonly greedyAgreement: number
  /** For every cut the same bits as without, and those near the model as one graph. */
  readonly splitEqualsWhole: boolean
}

/** Tokens of the prompt go in runs of this many, so that caches and windows are met in the middle. */
const CHUNK = 7
/** Kernels with int8 activations round differently at the last bit of their input. */
const WHOLE_TOLERANCE: Readonly<Record<WeightDtype, number>> = {
  f32: 1e-4,
  f16: 1e-4,
  q8: 0.25,
  q4: 0.25,
}

export async function compare(reference: Reference, dtype: WeightDtype): Promise<FamilyRow> {
  const opened = await openModelSource(reference.path)
  try {
    const model = createTestModel(decoderFor(opened, reference), dtype, baseNames(opened.weights))
    // As written the runtime multiplies 4-bit weights with f32 activations; test/law/split-offsets.test.ts compares.
    const lowered = dtype === 'q4'
    const whole = await logitsOf(await openWhole(ort, model, 'cpu', { lowered }), reference)
    const [uncut = [], ...splits] = await everyCut(model, reference)
    return {
      family: reference.name,
      source: reference.source,
      dtype,
      maxLogitError: worstDifference(uncut, reference.logits),
      greedyAgreement: agreement(uncut, reference),
      splitEqualsWhole:
        worstDifference(uncut, whole) <= WHOLE_TOLERANCE[dtype] &&
        splits.every((logits) => worstDifference(logits, uncut) === 0),
    }
  } finally {
    await opened.close()
  }
}

/** A context that the model would not be served with by default is asked for. */
function decoderFor(source: ModelSource, { promptIds, greedyIds }: Reference): ModelDecoder {
  const { config, generationConfig } = source
  const tokens = promptIds.length + greedyIds.length
  const decoder = parseDecoder(config, generationConfig)
  if (decoder.contextLength >= tokens) return decoder
  return parseDecoder(config, generationConfig, tokens)
}

/** Without a cut, at each border by itself, then at all. */
async function everyCut(model: TestModel, reference: Reference): Promise<Float32Array[][]> {
  const borders = model.decoder.layers.map((_, layer) => layer + 1)
  const all: Float32Array[][] = []
  const blocks = await openBlocks(ort, model, { provider: 'cpu' })
  for (const cuts of [[], ...borders.map((border) => [border]), borders]) {
    all.push(await logitsOf(blocks.chain({ cuts }), reference))
  }
  await blocks.close()
  return all
}

/** Logits after every token of prompt and answer, the reference's answer being fed; closes the decoder. */
async function logitsOf(decoder: Decoder, reference: Reference): Promise<Float32Array[]> {
  const { promptIds, greedyIds, vocabSize } = reference
  const rows: Float32Array[] = []
  const feed = async (ids: readonly number[]): Promise<void> => {
    const logits = await decoder.step(rows.length, ids)
    ids.forEach((_, i) => rows.push(logits.slice(i * vocabSize, (i + 1) * vocabSize)))
  }
  for (let at = 0; at < promptIds.length; at += CHUNK) await feed(promptIds.slice(at, at + CHUNK))
  for (const id of greedyIds.slice(0, -1)) await feed([id])
  await decoder.close()
  return rows
}

function agreement(logits: readonly Float32Array[], { promptIds, greedyIds }: Reference): number {
  const answers = logits.slice(promptIds.length - 1)
  const same = greedyIds.filter((id, i) => {
    const row = answers[i] ?? new Float32Array()
    return row.indexOf(Math.max(...row)) === id
  })
  return same.length / greedyIds.length
}
