import {
  checkNamedExport,
  chooseExport,
  type AskedDtype,
  type ExportChoice,
} from '../core/model/onnx/export-files.ts'
import type { HubFile, HubListing } from './hub-files.ts'

export type ChosenExport = {
  readonly choice: ExportChoice
  /** The graph, then the files that hold its weights. */
  readonly files: readonly HubFile[]
}

/**
 * An ONNX export and the files that hold its weights, or null.
 * @throws CrowdError bad-option, which lists what there is
 */
export function chooseOnnx(listing: HubListing, dtype: AskedDtype | null): ChosenExport | null {
  const paths = listing.files.map(({ path }) => path)
  const choice = chooseExport(paths, dtype ?? undefined, listing.repo)
  return choice === null ? null : withData(listing, choice)
}

/** The file of that path; null where there is none. @throws CrowdError bad-option where it is of another dtype */
export function namedOnnx(
  listing: HubListing,
  path: string,
  dtype: AskedDtype | null,
): ChosenExport | null {
  checkNamedExport(path, dtype ?? undefined)
  return withData(listing, { path, dtype: null, others: [] })
}

function withData({ files }: HubListing, choice: ExportChoice): ChosenExport | null {
  const graph = files.find(({ path }) => path === choice.path)
  if (graph === undefined) return null
  const own = files.filter(({ path }) => graphOfData(path) === choice.path)
  return { choice, files: [graph, ...(own.length > 0 ? own : orphans(files, choice.path))] }
}

/** Data that no graph has the name of: a renamed graph still knows its data by the former name. */
function orphans(files: readonly HubFile[], entry: string): HubFile[] {
  const paths = new Set(files.map(({ path }) => path))
  return files.filter(({ path }) => {
    const graph = graphOfData(path)
    return graph !== null && !paths.has(graph) && folderOf(path) === folderOf(entry)
  })
}

/** `model.onnx_data`, `model.onnx_data_1` and `model.onnx.data` belong to `model.onnx`. */
function graphOfData(path: string): string | null {
  return /^(.*\.onnx)(?:_data(?:_\d+)?|\.data)$/.exec(path)?.[1] ?? null
}

function folderOf(path: string): string {
  return path.slice(0, path.lastIndexOf('/') + 1)
}
