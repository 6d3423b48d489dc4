import { open, readFile, readdir, stat, type FileHandle } from 'node:fs/promises'
import { join } from 'node:path'
import { CrowdError } from '../core/errors.ts'
import { isRecord } from '../core/model/json-fields.ts'
import { weightsRemedy } from '../core/model/missing-files.ts'
import {
  parseSafetensors,
  SAFETENSORS_PREFIX_BYTES,
  safetensorsHeaderBytes,
  type PlacedTensor,
} from '../core/model/safetensors.ts'
import type { TensorSource } from '../core/model/tensor-source.ts'
import { readRange } from './read-range.node.ts'

const SINGLE = 'model.safetensors'
const INDEX = 'model.safetensors.index.json'

export type SafetensorsSource = TensorSource & { readonly close: () => Promise<void> }

/**
 * The weight files of a directory: `model.safetensors`, or the ones that its index names.
 * @throws CrowdError model-invalid where there are none, or the index names a path outside the directory
 */
export async function weightFiles(directory: string): Promise<string[]> {
  if (await isFile(join(directory, SINGLE))) return [SINGLE]
  if (!(await isFile(join(directory, INDEX)))) {
    const remedy = weightsRemedy(directory, await readdir(directory))
    const what = `${directory} has neither ${SINGLE} nor ${INDEX}. ${remedy}`
    throw new CrowdError('model-invalid', what.trimEnd())
  }
  const json: unknown = parseJson(await readFile(join(directory, INDEX), 'utf8'), INDEX)
  const map = isRecord(json) ? json['weight_map'] : undefined
  const names = isRecord(map) ? [...new Set(Object.values(map))] : []
  const files = names.filter((name) => typeof name === 'string')
  if (files.length === 0 || files.length !== names.length) {
    throw new CrowdError('model-invalid', `${INDEX} has no valid "weight_map".`)
  }
  for (const file of files) {
    if (!/^[\w.-]+\.safetensors$/.test(file)) {
      throw new CrowdError('model-invalid', `${INDEX} names the file ${JSON.stringify(file)}.`)
    }
    if (!(await isFile(join(directory, file)))) {
      throw new CrowdError('model-invalid', `${directory} lacks ${file}, which ${INDEX} names.`)
    }
  }
  return files.sort()
}

/** Whether a directory has weights in safetensors, without a look into them. */
export async function hasWeightFiles(directory: string): Promise<boolean> {
  return (await isFile(join(directory, SINGLE))) || isFile(join(directory, INDEX))
}

/** Opens the weights; headers are parsed at once, tensors are read when asked for. */
export async function openSafetensors(directory: string): Promise<SafetensorsSource> {
  const handles: FileHandle[] = []
  const places = new Map<string, { tensor: PlacedTensor; handle: FileHandle; file: string }>()
  const close = async (): Promise<void> => {
    await Promise.all(handles.splice(0).map((handle) => handle.close()))
  }
  try {
    for (const file of await weightFiles(directory)) {
      const handle = await open(join(directory, file), 'r')
      handles.push(handle)
      for (const [name, tensor] of await readHeader(handle, file)) {
        places.set(name, { tensor, handle, file })
      }
    }
  } catch (error) {
    await close()
    throw error
  }
  return {
    close,
    find: (name) => places.get(name)?.tensor,
    read: async (name, offset, length) => {
      const place = places.get(name)
      if (!place || offset + length > place.tensor.length) {
        throw new CrowdError('internal', `No ${length} bytes at ${offset} of the tensor ${name}.`)
      }
      return readRange(place.handle, place.tensor.offset + offset, length, place.file)
    },
  }
}

async function readHeader(handle: FileHandle, file: string): Promise<Map<string, PlacedTensor>> {
  const { size } = await handle.stat()
  const prefixBytes = Math.min(size, SAFETENSORS_PREFIX_BYTES)
  const prefix = await readRange(handle, 0, prefixBytes, file)
  const length = safetensorsHeaderBytes(prefix, size, file)
  return parseSafetensors(
    await readRange(handle, SAFETENSORS_PREFIX_BYTES, length, file),
    size,
    file,
  )
}

/** @throws CrowdError model-invalid */
export function parseJson(text: string, file: string): unknown {
  try {
    return JSON.parse(text) as unknown
  } catch (cause) {
    throw new CrowdError('model-invalid', `${file} is not JSON.`, { cause })
  }
}

export async function isFile(path: string): Promise<boolean> {
  return stat(path).then(
    (info) => info.isFile(),
    () => false,
  )
}
