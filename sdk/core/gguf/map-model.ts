import { CrowdError } from '../errors.ts'
import {
  readSizes,
  refuseOddEntries,
  unsupported,
  type GgufFamily,
  type GgufModel,
  type GgufSizes,
} from './family.ts'
import { BLOOM, FALCON, FALCON_TWO_NORMS, GPT2 } from './gpt-families.ts'
import {
  GEMMA2,
  GEMMA3,
  LLAMA,
  OLMOE,
  PHI3,
  QWEN2,
  QWEN3,
  QWEN3_MOE,
  SMOLLM3,
} from './llama-families.ts'
import type { GgufTensor } from './place-tensors.ts'
import { isRopeTensor, ropeConfig, type RopeDivisors } from './rope-config.ts'
import { viewExpert, viewTensor, type TensorView } from './tensor-view.ts'

const FAMILIES: readonly GgufFamily[] = [
  LLAMA,
  SMOLLM3,
  QWEN2,
  QWEN3,
  QWEN3_MOE,
  OLMOE,
  PHI3,
  GEMMA2,
  GEMMA3,
  GPT2,
  BLOOM,
  FALCON,
]

/** A GGUF model as the Hugging Face layout has it. */
export type MappedModel = {
  /** config.json, but for what the tokenizer says. */
  readonly config: Readonly<Record<string, unknown>>
  readonly views: ReadonlyMap<string, TensorView>
}

/**
 * Names, shapes and settings of a model in the Hugging Face layout.
 * @param divisors values of the rotary tensors
 * @throws CrowdError model-invalid, model-unsupported (architecture, entry or tensor is named)
 */
export function mapModel(model: GgufModel, divisors: RopeDivisors): MappedModel {
  const family = findFamily(model)
  const sizes = readSizes(model, family.name)
  refuseOddEntries(sizes)
  checkLayers(sizes)
  const views = new Map<string, TensorView>()
  for (const tensor of model.tensors.values()) {
    for (const view of viewsOf(tensor, family, sizes)) {
      if (views.has(view.name)) throw unsupported(model.file, `two tensors are ${view.name}`)
      views.set(view.name, view)
    }
  }
  const config = {
    ...family.config(sizes),
    ...ropeConfig(sizes, divisors),
    vocab_size: sizes.vocabulary,
    tie_word_embeddings: !model.tensors.has('output.weight'),
  }
  return { config, views }
}

function findFamily({ file, metadata, tensors }: GgufModel): GgufFamily {
  const name = metadata.text('general.architecture')
  const family = FAMILIES.find((candidate) => candidate.name === name)
  if (family === undefined) {
    const known = FAMILIES.map((candidate) => candidate.name).join(', ')
    throw new CrowdError(
      'model-unsupported',
      `${file}: the architecture ${JSON.stringify(name)} is not supported in GGUF. Supported: ${known}.`,
    )
  }
  const hasTwoNorms = family === FALCON && tensors.has('blk.0.attn_norm_2.weight')
  return hasTwoNorms ? FALCON_TWO_NORMS : family
}

/** Planning a model takes time for each layer that the file says it has. */
function checkLayers({ model, layers }: GgufSizes): void {
  const found = new Set([...model.tensors.keys()].map((name) => placeOf(name)?.layer ?? -1))
  found.delete(-1)
  if (found.size === layers) return
  throw new CrowdError(
    'model-invalid',
    `${model.file}: block_count is ${layers}; there are tensors of ${found.size} layers.`,
  )
}

/** A tensor under its Hugging Face name; a stack of experts under many; none where it's read otherwise. */
function viewsOf(tensor: GgufTensor, family: GgufFamily, sizes: GgufSizes): TensorView[] {
  const place = placeOf(tensor.name)
  // Rotary tensors are in the settings; old files have a table of frequencies, which follows from theta.
  if (isRopeTensor(tensor.name) || place?.part === 'attn_rot_embd') return []
  if (place === null) throw unknownTensor(tensor, family, sizes)
  const name = nameOf(place, family, sizes)
  if (name === undefined) throw unknownTensor(tensor, family, sizes)
  if (name.includes('{}')) return expertViews(tensor, name)
  const change = family.change?.(place.part, sizes) ?? { kind: 'none' }
  return [viewTensor(`${name}.${place.ending}`, tensor, change)]
}

type Place = {
  /** null: outside of the layers. */
  readonly layer: number | null
  readonly part: string
  readonly ending: 'weight' | 'bias'
}

function placeOf(name: string): Place | null {
  const match = /^(?:blk\.(\d{1,6})\.)?(.+)\.(weight|bias)$/.exec(name)
  if (match === null) return null
  const [, layer, part = '', ending] = match
  return {
    layer: layer === undefined ? null : Number(layer),
    part,
    ending: ending === 'bias' ? 'bias' : 'weight',
  }
}

/** The Hugging Face name without its ending, where the family has such a tensor; a stack's has `{}` in it. */
function nameOf({ layer, part }: Place, family: GgufFamily, sizes: GgufSizes): string | undefined {
  if (layer === null) return own(family.names, part)
  const name =
    own(family.layerNames, part) ??
    own(family.expertNames ?? {}, part) ??
    singleExpert(family, part)
  if (name === undefined || layer >= sizes.layers) return undefined
  return `${family.layerPrefix}${layer}.${name}`
}

function expertViews(tensor: GgufTensor, name: string): TensorView[] {
  if (tensor.dims.length !== 3 || !tensor.name.endsWith('.weight')) {
    throw new CrowdError('model-invalid', `The tensor ${tensor.name} is no stack of matrices.`)
  }
  const experts = tensor.dims[0] ?? 0
  return Array.from({ length: experts }, (_, e) =>
    viewExpert(`${name.replace('{}', String(e))}.weight`, tensor, e),
  )
}

/** Files of 2023 have each expert by itself: `ffn_up.3`. */
function singleExpert(family: GgufFamily, part: string): string | undefined {
  const [, kind = '', expert = ''] = /^(ffn_\w+)\.(\d+)$/.exec(part) ?? []
  return own(family.expertNames ?? {}, `${kind}_exps`)?.replace('{}', expert)
}

function unknownTensor(tensor: GgufTensor, family: GgufFamily, { model }: GgufSizes): CrowdError {
  return unsupported(
    model.file,
    `the tensor ${tensor.name} is none that the architecture ${family.name} has`,
  )
}

function own(record: Readonly<Record<string, string>>, name: string): string | undefined {
  return Object.hasOwn(record, name) ? record[name] : undefined
}
