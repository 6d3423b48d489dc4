import { readdir, stat } from 'node:fs/promises'
import { basename, dirname, join, resolve } from 'node:path'

const MODEL_FILE = /\.(gguf|onnx)$/i

/** `path` is a directory in the Hugging Face layout, or a `.gguf` or `.onnx` file. */
export type ResolvedModel = {
  readonly kind: 'builtin' | 'path'
  readonly name: string
  readonly path: string
}

/** A built-in model's name (a directory under `builtinDir`), or a path that can be imported; else null. */
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
  return info?.isDirectory() === true || (info?.isFile() === true && MODEL_FILE.test(path))
}
