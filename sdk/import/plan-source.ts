import type { Decoder } from '../core/decoder/decoder.ts'
import { CrowdError } from '../core/errors.ts'
import { baseNames } from '../core/families/base-names.ts'
import { parseDecoder } from '../core/families/parse-decoder.ts'
import { checkSource } from '../core/model/make-weight.ts'
import { isQuantized, type WeightDtype } from '../core/model/manifest.ts'
import { asWeightDtype, type AskedDtype } from '../core/model/onnx/export-files.ts'
import { planModel, type BlockPlan } from '../core/model/plan-model.ts'
import type { TensorSource } from '../core/model/tensor-source.ts'
import { Q4_BLOCK } from '../core/tensor/quantize-q4.ts'
import type { ModelSource } from './model-source.ts'

/** How a source is cut, before any weight is read. */
export type PlannedSource = {
  readonly decoder: Decoder
  readonly dtype: WeightDtype
  readonly plans: readonly BlockPlan[]
  /** Found under the names that the plans use. */
  readonly weights: TensorSource
}

/** What planning asks of a source. */
type OpenedSource = Pick<
  ModelSource,
  'name' | 'config' | 'generationConfig' | 'weights' | 'mustBeRead'
>

/** As ImportOptions has them. */
type PlanOptions = {
  readonly dtype?: AskedDtype | undefined
  readonly contextLength?: number | undefined
}

/**
 * Plans the blocks of a source, by its settings and the names, types and shapes of its tensors.
 * @throws CrowdError model-invalid, model-unsupported (the field or tensor is named)
 */
export function planSource(
  source: OpenedSource,
  { dtype: asked, contextLength }: PlanOptions,
): PlannedSource {
  const known = asked === undefined ? null : asWeightDtype(asked, source.name)
  const decoder = parseDecoder(source.config, source.generationConfig, contextLength)
  const weights = baseNames(source.weights)
  const dtype = known ?? defaultDtype(weights, decoder)
  const plans = planModel(decoder, dtype)
  // All names and shapes first: a missing tensor is told before minutes of work.
  const read = new Set(
    plans.flatMap((plan) => plan.weights.map(({ recipe }) => checkSource(recipe, weights).name)),
  )
  checkAllRead(source, read, decoder)
  return { decoder, dtype, plans, weights }
}

/** A weight that nothing multiplies or adds is a text that is wrong without a word. */
function checkAllRead(
  { name, mustBeRead }: OpenedSource,
  read: ReadonlySet<string>,
  { architecture }: Decoder,
): void {
  for (const [tensor, shown] of mustBeRead ?? []) {
    if (read.has(tensor)) continue
    throw new CrowdError(
      'model-unsupported',
      `${name}: ${architecture} has no use for the tensor ${shown}, and without it the text may be wrong.`,
    )
  }
}

/**
 * By a matrix of the first layer, which is like most of the weights. What no dtype holds exactly is kept in f16,
 * where that is small: a small model suffers most from rounding.
 */
function defaultDtype(weights: TensorSource, decoder: Decoder): WeightDtype {
  const { layers, hiddenSize } = decoder
  const tensor = weights.find(layers[0]?.attention.query.matrix.source ?? '')
  const plain = tensor?.type === 'f32' ? 'f32' : 'f16'
  const kept = tensor?.keptAs === undefined ? plain : (tensor.keptAs ?? roundedDtype(decoder))
  return isQuantized(kept) && hiddenSize % Q4_BLOCK !== 0 ? 'f16' : kept
}

/** Up to this size f16 is taken where a file is quantised in a way that 8 bits don't hold exactly. */
const SMALL_F16_BYTES = 1024 ** 3

function roundedDtype(decoder: Decoder): WeightDtype {
  const bytes = planModel(decoder, 'f16').reduce((sum, { dataBytes }) => sum + dataBytes, 0)
  return bytes <= SMALL_F16_BYTES ? 'f16' : 'q8'
}
