import { readdir } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import { CrowdError } from '../core/errors.ts'
import {
  checkNamedExport,
  chooseExport,
  type AskedDtype,
  type ExportChoice,
} from '../core/model/onnx/export-files.ts'
import { isFile } from './safetensors-source.node.ts'

const FOLDERS = ['onnx', ''] as const

/** A graph file and the folder of the config.json that belongs to it. */
export type OnnxModel = {
  readonly file: string
  readonly directory: string
  /** null where the file itself was named. */
  readonly choice: ExportChoice | null
}

/**
 * The ONNX export at a path: an .onnx file with its config.json beside it or one folder up, or a directory
 * in the layout of transformers.js, from which `dtype` chooses. Null where there is no export.
 * @throws CrowdError model-not-found, model-invalid, bad-option (the choices are listed)
 */
export async function findOnnxModel(path: string, dtype?: AskedDtype): Promise<OnnxModel | null> {
  if (path.endsWith('.onnx')) {
    checkNamedExport(path, dtype)
    return modelOfFile(path)
  }
  const choice = chooseExport(await filesIn(path), dtype, path)
  return choice === null ? null : { file: join(path, choice.path), directory: path, choice }
}

async function modelOfFile(file: string): Promise<OnnxModel> {
  if (!(await isFile(file))) throw new CrowdError('model-not-found', `There is no file ${file}.`)
  for (const directory of [dirname(file), dirname(dirname(file))]) {
    if (await isFile(join(directory, 'config.json'))) return { file, directory, choice: null }
  }
  throw new CrowdError(
    'model-invalid',
    `${basename(file)} has no config.json beside it or one folder up.`,
  )
}

/** Relative to the directory, with `/`. */
async function filesIn(directory: string): Promise<string[]> {
  const found = await Promise.all(
    FOLDERS.map(async (folder) => {
      const names = await readdir(join(directory, folder)).catch(() => [])
      return names.map((name) => (folder === '' ? name : `${folder}/${name}`))
    }),
  )
  return found.flat()
}
