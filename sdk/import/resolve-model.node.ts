import { readdir, stat } from 'node:fs/promises'
import { basename, dirname, join, resolve } from 'node:path'
import { CrowdError } from '../core/errors.ts'

const MODEL_FILE = /\.(gguf|onnx)$/i
/** What can't be read without the files beside it. */
const PART_FILE =
  /\.(safetensors|bin|pth|pt|onnx_data)$|^(config|tokenizer|model\.safetensors\.index)\.json$|^tokenizer\.model$/i

/** `path` is a directory in the Hugging Face layout, or a `.gguf` or `.onnx` file. */
export type ResolvedModel = {
  readonly kind: 'builtin' | 'path'
  readonly name: string
  readonly path: string
}

/**
 * A built-in model's name (a directory under `builtinDir`), or a path that can be imported; else null.
 * @throws CrowdError model-not-found for a file that is only a part of a model
 */
export async function resolveModel(
  nameOrPath: string,
  builtinDir: string,
): Promise<ResolvedModel | null> {
  const builtin = await builtinModels(builtinDir)
  if (builtin.includes(nameOrPath)) {
    return { kind: 'builtin', name: nameOrPath, path: join(builtinDir, nameOrPath) }
  }
  const path = resolve(nameOrPath)
  if (nameOrPath === '' || !(await isSource(path))) return null
  return { kind: 'path', name: nameOfPath(path), path }
}

/** What a path is called unless its owner says otherwise: a valid model name. */
export function nameOfPath(path: string): string {
  const name = ownName(path)
    .replace(/[^\w.-]+/g, '-')
    .replace(/^[.-]+/, '')
  return name.slice(0, 80) || 'model'
}

/** Files of an ONNX export are all called model, so the name is that of the model's folder too. */
function ownName(path: string): string {
  const name = basename(path).replace(MODEL_FILE, '')
  if (!/\.onnx$/i.test(path)) return name
  const folder = dirname(path)
  const model = basename(folder) === 'onnx' ? dirname(folder) : folder
  return `${basename(model)}-${name}`
}

/** Names of the models that come with the product. */
export async function builtinModels(builtinDir: string): Promise<string[]> {
  const entries = await readdir(builtinDir, { withFileTypes: true }).catch(() => [])
  return entries
    .filter((entry) => entry.isDirectory())
    .map((entry) => entry.name)
    .sort()
}

async function isSource(path: string): Promise<boolean> {
  const info = await stat(path).catch(() => null)
  if (info?.isDirectory() === true) return true
  if (info?.isFile() !== true) return false
  if (MODEL_FILE.test(path)) return true
  if (!PART_FILE.test(basename(path))) return false
  const message = `${path} is one file of a model: give its folder, ${dirname(path)}.`
  throw new CrowdError('model-not-found', message)
}
