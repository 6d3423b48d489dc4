import { readdir, stat } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import { CrowdError } from '../core/errors.ts'
import { isFile } from './safetensors-source.node.ts'

/** Names of weights in the layout of transformers.js, best first where nothing was asked for. */
const SUFFIXES = {
  fp16: '_fp16',
  fp32: '',
  q4f16: '_q4f16',
  q4: '_q4',
  q8: '_quantized',
  int8: '_int8',
  uint8: '_uint8',
  bnb4: '_bnb4',
} as const

export type OnnxDtype = keyof typeof SUFFIXES

/** Words of other sources for the same. */
const ALIASES: Readonly<Record<string, OnnxDtype>> = { f16: 'fp16', f32: 'fp32' }
const STEMS = ['model', 'decoder_model_merged']
const FOLDERS = ['onnx', '.']

/** A graph file and the folder of the config.json that belongs to it. */
export type OnnxModel = { readonly file: string; readonly directory: string }

/**
 * The ONNX export at a path: an .onnx file with its config.json beside it or one folder up, or a directory
 * in the layout of transformers.js, from which `dtype` chooses. Null where there is no export.
 * @throws CrowdError model-not-found, model-invalid, bad-option (the choices are listed)
 */
export async function findOnnxModel(path: string, dtype?: string): Promise<OnnxModel | null> {
  if (path.endsWith('.onnx')) return modelOfFile(path)
  const info = await stat(path).catch(() => null)
  if (!info?.isDirectory()) return null
  const files = await exportsOf(path)
  if (files.length === 0) return null
  const wanted = dtype === undefined ? Object.keys(SUFFIXES) : [ALIASES[dtype] ?? dtype]
  const named = wanted.flatMap((name) => {
    const suffix = Object.entries(SUFFIXES).find(([key]) => key === name)?.[1]
    return suffix === undefined ? [] : STEMS.map((stem) => `${stem}${suffix}.onnx`)
  })
  const chosen = named.flatMap((name) => files.find((file) => basename(file) === name) ?? [])[0]
  const [only] = files
  if (chosen !== undefined) return { file: chosen, directory: path }
  if (dtype === undefined && files.length === 1 && only) return { file: only, directory: path }
  const names = files.map((file) => basename(file)).join(', ')
  throw new CrowdError(
    'bad-option',
    `${path} has no ONNX file of dtype ${dtype ?? 'any known name'}; it has ${names}.`,
  )
}

async function modelOfFile(file: string): Promise<OnnxModel> {
  if (!(await isFile(file))) throw new CrowdError('model-not-found', `There is no file ${file}.`)
  for (const directory of [dirname(file), dirname(dirname(file))]) {
    if (await isFile(join(directory, 'config.json'))) return { file, directory }
  }
  throw new CrowdError(
    'model-invalid',
    `${basename(file)} has no config.json beside it or one folder up.`,
  )
}

/** All .onnx files; a directory of weights in another form has none. */
async function exportsOf(directory: string): Promise<string[]> {
  for (const folder of FOLDERS) {
    const entries = await readdir(join(directory, folder)).catch(() => [])
    const files = entries.filter((name) => name.endsWith('.onnx')).sort()
    if (files.length > 0) return files.map((name) => join(directory, folder, name))
  }
  return []
}
