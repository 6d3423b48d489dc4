import { CrowdError } from '../core/errors.ts'
import { describeFiles } from './describe-files.ts'
import type { HubFile, HubListing } from './hub-files.ts'

/** Of one model in several files: `-00001-of-00003.gguf`. */
const SPLIT = /-\d{5}-of-(\d{5})\.gguf$/i
/** Picture encoders and importance matrices, not language models. */
const OTHER = /mmproj|imatrix/i

/**
 * The GGUF file with that path or quantisation, or all files of a split one; with none given, the only model.
 * @returns empty where there is none at all
 * @throws CrowdError model-not-found where several fit, model-invalid where files of a split one are missing
 */
export function chooseGguf(listing: HubListing, part: string | null): readonly HubFile[] {
  const all = listing.files.filter(({ path }) => /\.gguf$/i.test(path) && !OTHER.test(path))
  const fitting = part === null ? all : all.filter(({ path }) => fits(path, part))
  const [first] = fitting
  if (first === undefined) return []
  const models = new Set(fitting.map(({ path }) => wholeName(path)))
  if (models.size > 1) {
    throw new CrowdError(
      'model-not-found',
      `${listing.repo} has several GGUF files: choose one, as in ${listing.repo}:${quantOf(first.path)}. It has: ${describeFiles(fitting)}.`,
    )
  }
  // Naming one file of a split model means all of them.
  const files = all.filter(({ path }) => wholeName(path) === wholeName(first.path))
  const total = Number(SPLIT.exec(first.path)?.[1] ?? 1)
  if (files.length === total) return files.sort((a, b) => (a.path < b.path ? -1 : 1))
  const message = `${listing.repo} has ${files.length} of the ${total} files of ${first.path}.`
  throw new CrowdError('model-invalid', message)
}

/** A path, or a quantisation that ends the name: `Q4_K_M` fits `model-Q4_K_M.gguf`, not `model-IQ4_K_M.gguf`. */
function fits(path: string, part: string): boolean {
  const wanted = part.toLowerCase()
  return path.toLowerCase() === wanted || quantOf(path).toLowerCase() === wanted
}

function wholeName(path: string): string {
  return path.replace(SPLIT, '.gguf')
}

function quantOf(path: string): string {
  const whole = wholeName(path)
  const name = (whole.split('/').at(-1) ?? whole).replace(/\.gguf$/i, '')
  return /(?:^|[.-])((?:I?Q\d|B?F16|F32|TQ\d|MXFP4)\w*)$/i.exec(name)?.[1] ?? path
}
