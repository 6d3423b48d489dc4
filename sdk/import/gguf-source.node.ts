import { open, type FileHandle } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import { CrowdError } from '../core/errors.ts'
import { mapModel } from '../core/gguf/map-model.ts'
import { readMetadata } from '../core/gguf/metadata.ts'
import type { GgufTensor } from '../core/gguf/place-tensors.ts'
import { readRows, viewShape } from '../core/gguf/read-rows.ts'
import { ropeTensors, type RopeDivisors } from '../core/gguf/rope-config.ts'
import { keptAs } from '../core/gguf/tensor-types.ts'
import { viewTensor, type TensorView } from '../core/gguf/tensor-view.ts'
import { tokenizerFiles } from '../core/gguf/tokenizer-json.ts'
import { readVocabulary } from '../core/gguf/vocabulary.ts'
import type { SourceTensor, TensorSource } from '../core/model/tensor-source.ts'
import { asBytes } from '../core/tensor/views.ts'
import { openPart, readGgufHeader, type GgufHeader, type GgufPart } from './gguf-header.node.ts'
import { shardPaths } from './gguf-shards.ts'
import type { ModelSource } from './model-source.ts'

/** One open file of a model. */
type Shard = { readonly part: GgufPart; readonly header: GgufHeader }

/** The same on this machine. */
type OpenShard = Shard & { readonly handle: FileHandle }

/** A model that nothing has to be closed of. */
export type DescribedGguf = Omit<ModelSource, 'close' | 'fingerprint'>

/** A tensor and the file that it lies in. */
type Placed = { readonly tensor: GgufTensor; readonly shard: Shard }

/**
 * Opens a GGUF file, or all files of a model that is split over several, as if it were a directory in the
 * Hugging Face layout: names, shapes and order of rows are that layout's, values are dequantised to f32 as
 * they are read.
 * @throws CrowdError model-not-found, model-invalid, model-unsupported (the part is named)
 */
export async function openGguf(path: string): Promise<ModelSource> {
  const shards: OpenShard[] = []
  const close = async (): Promise<void> => {
    await Promise.all(shards.splice(0).map(({ handle }) => handle.close()))
  }
  try {
    await openShards(path, shards)
    return { ...(await describe(shards)), fingerprint: await fingerprint(shards), close }
  } catch (error) {
    await close()
    throw error
  }
}

/**
 * The same of files that lie elsewhere, in the order of their numbers.
 * @throws CrowdError model-invalid, model-unsupported (the part is named), and what reading throws
 */
export async function describeGguf(parts: readonly GgufPart[]): Promise<DescribedGguf> {
  const shards: Shard[] = []
  for (const part of parts) shards.push({ part, header: await readGgufHeader(part) })
  return describe(shards)
}

async function openShards(path: string, shards: OpenShard[]): Promise<void> {
  const first = await openShard(path)
  shards.push(first)
  const count = readMetadata(first.header.metadata, first.part.file)
  const total = count.has('split.count') ? count.count('split.count') : 1
  if (total <= 1) return
  shards.length = 0
  await first.handle.close()
  for (const name of shardPaths(basename(path), total)) {
    shards.push(await openShard(join(dirname(path), name)))
  }
}

async function openShard(path: string): Promise<OpenShard> {
  const file = basename(path)
  const handle = await open(path, 'r').catch((cause: unknown) => {
    throw new CrowdError('model-not-found', `The file ${path} can't be opened.`, { cause })
  })
  try {
    const part = await openPart(handle, file)
    return { part, handle, header: await readGgufHeader(part) }
  } catch (error) {
    await handle.close()
    throw error
  }
}

async function describe(shards: readonly Shard[]): Promise<DescribedGguf> {
  const [first] = shards
  if (first === undefined) throw new CrowdError('internal', 'A GGUF model without files.')
  const { file } = first.part
  const placed = placeAll(shards)
  const tensors = new Map([...placed].map(([name, { tensor }]) => [name, tensor]))
  const metadata = readMetadata(first.header.metadata, file)
  const read = (
    view: TensorView,
    from: number,
    count: number,
  ): Promise<Float32Array<ArrayBuffer>> => {
    const { part } = placed.get(view.tensor.name)?.shard ?? first
    return readRows(view, part.read, from, count)
  }
  const model = mapModel({ file, metadata, tensors }, await readDivisors(tensors, read))
  const vocabulary = readVocabulary(metadata, tensors.get('token_embd.weight')?.dims[0] ?? 0, file)
  const own = tokenizerFiles(vocabulary, metadata.text('general.architecture'))
  return {
    name: file.replace(/(-\d{5}-of-\d{5})?\.gguf$/i, ''),
    config: { ...model.config, eos_token_id: own.generationConfig['eos_token_id'] },
    generationConfig: own.generationConfig,
    files: new Map([
      ['tokenizer.json', jsonFile(own.tokenizer)],
      ['tokenizer_config.json', jsonFile(own.tokenizerConfig)],
      ['generation_config.json', jsonFile(own.generationConfig)],
    ]),
    weights: tensorSource(model.views, read),
    // llama.cpp refuses a file with a tensor that it doesn't use, so none of them is there for nothing.
    mustBeRead: new Map([...model.views].map(([name, view]) => [name, view.tensor.name])),
  }
}

function placeAll(shards: readonly Shard[]): Map<string, Placed> {
  const placed = new Map<string, Placed>()
  for (const shard of shards) {
    for (const tensor of shard.header.tensors) {
      if (placed.has(tensor.name)) {
        throw new CrowdError(
          'model-invalid',
          `${shard.part.file} repeats the tensor ${tensor.name}.`,
        )
      }
      placed.set(tensor.name, { tensor, shard })
    }
  }
  return placed
}

type ReadView = (
  view: TensorView,
  firstRow: number,
  count: number,
) => Promise<Float32Array<ArrayBuffer>>

/** Rotary divisors are settings in the Hugging Face layout, not weights. */
async function readDivisors(
  tensors: ReadonlyMap<string, GgufTensor>,
  read: ReadView,
): Promise<RopeDivisors> {
  const divisors: Partial<Record<keyof RopeDivisors, readonly number[]>> = {}
  for (const [kind, tensor] of ropeTensors(tensors)) {
    if (tensor.dims.length !== 1 || (tensor.dims[0] ?? 0) > 4096) {
      throw new CrowdError('model-invalid', `The tensor ${tensor.name} is no list of divisors.`)
    }
    divisors[kind] = [...(await read(viewTensor(tensor.name, tensor, { kind: 'none' }), 0, 1))]
  }
  return divisors
}

function tensorSource(views: ReadonlyMap<string, TensorView>, read: ReadView): TensorSource {
  return {
    find: (name): SourceTensor | undefined => {
      const view = views.get(name)
      return view && { name, type: 'f32', dims: view.dims, keptAs: keptAs(view.tensor.type) }
    },
    read: async (name, offset, length) => {
      const view = views.get(name)
      if (view === undefined) throw new CrowdError('internal', `There is no tensor ${name}.`)
      const rowBytes = viewShape(view).columns * 4
      const first = Math.floor(offset / rowBytes)
      const end = Math.ceil((offset + length) / rowBytes)
      const rows = asBytes(await read(view, first, end - first))
      const from = offset - first * rowBytes
      return rows.subarray(from, from + length)
    },
  }
}

function jsonFile(json: unknown): () => Promise<Uint8Array> {
  return () => Promise.resolve(new TextEncoder().encode(JSON.stringify(json)))
}

async function fingerprint(shards: readonly OpenShard[]): Promise<string> {
  const lines = await Promise.all(
    shards.map(async ({ part, handle }) => {
      const { size, mtimeMs } = await handle.stat()
      return `${part.file} ${size} ${mtimeMs}`
    }),
  )
  return lines.join('\n')
}
