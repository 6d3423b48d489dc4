import { open, stat, type FileHandle } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import { CrowdError } from '../core/errors.ts'
import type { Graph, Initializer, TensorData } from '../core/graph/graph.ts'
import { readOnnx } from '../core/graph/onnx-reader.ts'
import { slimOnnx } from '../core/graph/slim-onnx.ts'
import type { ReadData } from '../core/model/onnx/copy-weights.ts'
import { readRange } from './read-range.node.ts'

export type OnnxSource = {
  /** Constants that are longer than INLINE_MAX_BYTES lie outside; their places were checked. */
  readonly graph: Graph
  readonly read: ReadData
  /** The graph file, then the files of its weights. */
  readonly files: readonly string[]
  readonly close: () => Promise<void>
}

/** Shapes and axes have to be in the graph itself. */
const INLINE_MAX_BYTES = 1024
/** transformers.js writes 100 at most. */
const FILES_MAX = 128

/**
 * Opens an ONNX file and the files beside it that hold its weights. Nothing large is read before it is
 * asked for.
 * @throws CrowdError model-invalid, model-unsupported (the part is named)
 */
export async function openOnnx(file: string): Promise<OnnxSource> {
  const directory = dirname(file)
  const handles = new Map<string, { handle: FileHandle; size: number }>()
  const close = async (): Promise<void> => {
    const open = [...handles.values()]
    handles.clear()
    await Promise.all(open.map(({ handle }) => handle.close()))
  }

  async function openAt(location: string): Promise<{ handle: FileHandle; size: number }> {
    const known = handles.get(location)
    if (known) return known
    const name = location === '' ? basename(file) : safeLocation(location)
    if (handles.size >= FILES_MAX) {
      throw new CrowdError('model-unsupported', `The weights lie in more than ${FILES_MAX} files.`)
    }
    const path = join(directory, name)
    const info = await stat(path).catch(() => null)
    if (!info?.isFile()) {
      throw new CrowdError('model-invalid', `The weights file ${name} is missing.`)
    }
    const opened = { handle: await open(path, 'r'), size: info.size }
    handles.set(location, opened)
    return opened
  }

  const read: ReadData = async (place, offset, length) => {
    if (place.kind === 'inline') return place.bytes.slice(offset, offset + length)
    const { handle } = await openAt(place.location)
    return readRange(handle, place.offset + offset, length, place.location || basename(file))
  }

  async function withinBounds(initializer: Initializer): Promise<Initializer> {
    const { data, name } = initializer
    if (data.kind === 'inline') return initializer
    const { size } = await openAt(data.location)
    if (data.offset + data.length > size) {
      throw new CrowdError(
        'model-invalid',
        `The tensor ${name} ends at byte ${data.offset + data.length} of ${size} of its file.`,
      )
    }
    if (data.length > INLINE_MAX_BYTES) return initializer
    return { ...initializer, data: await inlined(data, read) }
  }

  try {
    const own = await openAt('')
    const slim = await slimOnnx({
      bytes: own.size,
      read: (offset, length) => readRange(own.handle, offset, length, basename(file)),
    })
    const graph = readOnnx(slim)
    const initializers: Initializer[] = []
    for (const initializer of graph.initializers) initializers.push(await withinBounds(initializer))
    const nodes = []
    for (const node of graph.nodes) {
      const { value } = node.attributes
      if (value?.kind !== 'tensor') nodes.push(node)
      else {
        const tensor = await withinBounds(value.value)
        const attributes = { ...node.attributes, value: { kind: 'tensor', value: tensor } as const }
        nodes.push({ ...node, attributes })
      }
    }
    const files = [...handles.keys()].map((location) => join(directory, location || basename(file)))
    return { graph: { ...graph, nodes, initializers }, read, files, close }
  } catch (error) {
    await close()
    throw error
  }
}

async function inlined(data: TensorData, read: ReadData): Promise<TensorData> {
  if (data.kind === 'inline') return data
  return { kind: 'inline', bytes: await read(data, 0, data.length) }
}

/** A path below the graph's folder, spelled plainly. @throws CrowdError model-invalid */
function safeLocation(location: string): string {
  const parts = location.replace(/^\.\//, '').split('/')
  const isPlain = parts.every((part) => /^[^\\/:\0]+$/.test(part) && part !== '..' && part !== '.')
  if (isPlain) return parts.join('/')
  throw new CrowdError(
    'model-invalid',
    `The weights lie at ${JSON.stringify(location)}, which is not a file beside the graph.`,
  )
}
