import type { WeightDtype } from '../core/model/manifest.ts'
import type { HubFile } from './hub-files.ts'

/** In the layout of transformers.js: `onnx/model<suffix>.onnx`. What comes closest to a dtype stands first. */
const SUFFIXES: Readonly<Record<WeightDtype | 'any', readonly string[]>> = {
  f32: ['', '_fp32'],
  f16: ['_fp16', ''],
  q8: ['_quantized', '_int8', '_uint8', '_fp16', ''],
  q4: ['_q4', '_q4f16', '_bnb4', '_fp16', ''],
  any: ['_fp16', '', '_q4', '_q4f16', '_quantized', '_int8', '_uint8'],
}
const FOLDERS: readonly string[] = ['onnx/', '']

/** An ONNX export and the files that hold its weights, or null. `path` names one outright. */
export function chooseOnnx(
  files: readonly HubFile[],
  dtype: WeightDtype | null,
  path?: string,
): { readonly entry: string; readonly files: readonly HubFile[] } | null {
  const paths = path === undefined ? candidates(dtype) : [path]
  for (const entry of paths) {
    const graph = files.find((file) => file.path === entry)
    if (graph === undefined) continue
    const data = files.filter((file) => isDataOf(file.path, entry))
    return { entry, files: [graph, ...data] }
  }
  return null
}

function candidates(dtype: WeightDtype | null): string[] {
  const suffixes = SUFFIXES[dtype ?? 'any']
  return FOLDERS.flatMap((folder) =>
    // The merged decoder is how older exports name it.
    ['model', 'decoder_model_merged'].flatMap((name) =>
      suffixes.map((suffix) => `${folder}${name}${suffix}.onnx`),
    ),
  )
}

/** `model.onnx_data`, `model.onnx_data_1`, `model.onnx.data` */
function isDataOf(path: string, entry: string): boolean {
  if (!path.startsWith(entry)) return false
  return /^(_data(_\d+)?|\.data)$/.test(path.slice(entry.length))
}
