import { readdir, stat } from 'node:fs/promises'
import { basename, dirname, join, resolve } from 'node:path'
import { CrowdError } from '../core/errors.ts'

export type ResolvedModel = { readonly name: string; readonly directory: string }

/**
 * A built-in model's name (a directory under `builtinDir`) or a path to a directory, GGUF or ONNX file.
 * @throws CrowdError model-not-found, which lists the built-in names
 */
export async function resolveModel(nameOrPath: string, builtinDir: string): Promise<ResolvedModel> {
  const builtin = await builtinModels(builtinDir)
  if (builtin.includes(nameOrPath)) {
    return { name: nameOrPath, directory: join(builtinDir, nameOrPath) }
  }
  const directory = resolve(nameOrPath)
  if (nameOrPath !== '' && (await isModelPath(directory))) {
    const name = pathName(directory).replace(/[^\w.-]+/g, '-')
    return { name: name || 'model', directory }
  }
  const names = builtin.length > 0 ? builtin.join(', ') : 'none'
  throw new CrowdError(
    'model-not-found',
    `There is no model, directory, GGUF or ONNX file "${nameOrPath}". Built in: ${names}.`,
  )
}

/** Names of the models that come with the product. */
export async function builtinModels(builtinDir: string): Promise<string[]> {
  const entries = await readdir(builtinDir, { withFileTypes: true }).catch(() => [])
  return entries
    .filter((entry) => entry.isDirectory())
    .map((entry) => entry.name)
    .sort()
}

/** Files of an ONNX export are all called model, so the name is that of the model's folder too. */
function pathName(path: string): string {
  if (!/\.onnx$/i.test(path)) return basename(path).replace(/\.gguf$/i, '')
  const folder = dirname(path)
  const model = basename(folder) === 'onnx' ? dirname(folder) : folder
  return `${basename(model)}-${basename(path).replace(/\.onnx$/i, '')}`
}

async function isModelPath(path: string): Promise<boolean> {
  return stat(path).then(
    (info) => info.isDirectory() || (info.isFile() && /\.(gguf|onnx)$/i.test(path)),
    () => false,
  )
}
