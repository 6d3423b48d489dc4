import { CrowdError } from '../../errors.ts'
import type { WeightDtype } from '../manifest.ts'

/**
 * Words for the weights of an ONNX export and the endings of their files in the layout of transformers.js,
 * `onnx/model<ending>.onnx`. What loses least stands first: of several the first is taken unless one is asked for.
 */
const ENDINGS = {
  fp16: ['_fp16'],
  fp32: ['', '_fp32'],
  q4: ['_q4'],
  q4f16: ['_q4f16'],
  q8: ['_quantized'],
  int8: ['_int8'],
  uint8: ['_uint8'],
  bnb4: ['_bnb4'],
} as const satisfies Readonly<Record<string, readonly string[]>>

export type ExportDtype = keyof typeof ENDINGS

/** How weights are to be kept, or which of an export's files is to be taken; `q4` and `q8` may mean either. */
export type AskedDtype = WeightDtype | ExportDtype

// Cast: the keys of a constant are its type's.
const EXPORT_DTYPES = Object.keys(ENDINGS) as readonly ExportDtype[]
const WEIGHT_DTYPES: readonly WeightDtype[] = ['q4', 'q8', 'f16', 'f32']
/** Every word, those that all sources take first. */
export const ASKED_DTYPES: readonly AskedDtype[] = [
  ...new Set<AskedDtype>([...WEIGHT_DTYPES, ...EXPORT_DTYPES]),
]
/** The merged decoder is how older exports name it. */
const STEMS = ['model', 'decoder_model_merged'] as const
const FOLDERS = ['onnx/', ''] as const
const SHOWN_MAX = 24

/** One file of the export that a source holds. */
export type ExportChoice = {
  /** As it was given. */
  readonly path: string
  /** null where the name doesn't say. */
  readonly dtype: ExportDtype | null
  /** What else could be asked for. */
  readonly others: readonly ExportDtype[]
}

/** Whether only an ONNX export can be meant. */
export function isExportWord(dtype: AskedDtype): dtype is Exclude<ExportDtype, 'q4' | 'q8'> {
  return WEIGHT_DTYPES.every((word) => word !== dtype)
}

/**
 * The dtype for weights that are made here, from safetensors or GGUF.
 * @param where names the source, for the error
 * @throws CrowdError bad-option for a word of ONNX exports
 */
export function asWeightDtype(dtype: AskedDtype, where: string): WeightDtype {
  if (!isExportWord(dtype)) return dtype
  const known = WEIGHT_DTYPES.join(', ')
  const message = `${where} holds no ONNX export, so there is no ${dtype}; its weights can be kept as ${known}.`
  throw new CrowdError('bad-option', message)
}

/**
 * Chooses among the files of a model's folder or repository.
 * @param paths relative to it, with `/`
 * @returns null where none of them is an ONNX export
 * @throws CrowdError bad-option, which lists what there is
 */
export function chooseExport(
  paths: readonly string[],
  dtype: AskedDtype | undefined,
  where: string,
): ExportChoice | null {
  const files = exportsIn(paths)
  const [first] = files
  if (first === undefined) return null
  const known = EXPORT_DTYPES.flatMap((word) => {
    const path = fileOf(files, word)
    return path === undefined ? [] : [{ word, path }]
  })
  const wanted = dtype === undefined ? known[0]?.word : exportWord(dtype)
  const chosen = known.find(({ word }) => word === wanted)
  if (chosen !== undefined) {
    const others = known.map(({ word }) => word).filter((word) => word !== chosen.word)
    return { path: chosen.path, dtype: chosen.word, others }
  }
  if (dtype === undefined && files.length === 1) return { path: first, dtype: null, others: [] }
  const what = dtype === undefined ? 'has no ONNX file of a known name' : `has no ${dtype}`
  throw new CrowdError('bad-option', `${where} ${what}. It has: ${listed(files)}.`)
}

/** Files that are named are taken as they are. @throws CrowdError bad-option where something else was asked for */
export function checkNamedExport(path: string, dtype: AskedDtype | undefined): void {
  const own = wordOf(path)
  if (dtype === undefined || own === exportWord(dtype)) return
  const is = own === null ? 'is taken as it is' : `is ${own}`
  throw new CrowdError('bad-option', `${path} ${is}: it can't be read as ${dtype}.`)
}

function exportsIn(paths: readonly string[]): string[] {
  for (const folder of FOLDERS) {
    const files = paths.filter(
      (path) => path.endsWith('.onnx') && path.lastIndexOf('/') + 1 === folder.length,
    )
    const inside = files.filter((path) => path.startsWith(folder)).sort()
    if (inside.length > 0) return inside
  }
  return []
}

function fileOf(files: readonly string[], word: ExportDtype): string | undefined {
  const names = STEMS.flatMap((stem) => ENDINGS[word].map((ending) => `${stem}${ending}.onnx`))
  for (const name of names) {
    const path = files.find((file) => baseName(file) === name)
    if (path !== undefined) return path
  }
  return undefined
}

function wordOf(path: string): ExportDtype | null {
  return EXPORT_DTYPES.find((word) => fileOf([path], word) !== undefined) ?? null
}

function exportWord(dtype: AskedDtype): ExportDtype {
  if (dtype === 'f16') return 'fp16'
  return dtype === 'f32' ? 'fp32' : dtype
}

function listed(files: readonly string[]): string {
  const shown = files.slice(0, SHOWN_MAX).map((path) => {
    const word = wordOf(path)
    return word === null ? path : `${word} (${path})`
  })
  const more = files.length - shown.length
  return more > 0 ? `${shown.join(', ')} and ${more} more` : shown.join(', ')
}

function baseName(path: string): string {
  return path.split(/[\\/]/).at(-1) ?? path
}
