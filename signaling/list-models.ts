import { toCrowdError } from '../sdk/core/errors.ts'
import type { Manifest } from '../sdk/core/model/manifest.ts'
import type { KeptDownload } from '../sdk/hub/kept-downloads.node.ts'
import { describeOrigin } from '../sdk/import/known-model.ts'
import {
  listKnownModels,
  openKnownModel,
  storeDirectory,
  storedBytes,
} from '../sdk/import/model-registry.node.ts'
import { readManifest } from '../sdk/import/model-store.node.ts'
import { builtinModels } from '../sdk/import/resolve-model.node.ts'
import { builtinDirectory } from '../sdk/import/stored-model.node.ts'
import { formatBytes, plain, table } from '../sdk/terminal/format.ts'
import { unfinishedDownloads } from './remove-model.ts'

export type ListedModel = {
  readonly name: string
  readonly from: string
  /** Built in: it is cut when it is first needed. Download: it is no model yet. */
  readonly kind: 'built-in' | 'added' | 'download'
  /** null while there are no blocks of it. */
  readonly dtype: string | null
  readonly bytes: number
  readonly contextLength: number | null
  /** What is wrong with it, or null. */
  readonly problem: string | null
}

/** The built-in models, those that were added, then downloads that are none yet. @throws CrowdError model-invalid */
export async function listModels(dataDir: string): Promise<ListedModel[]> {
  const known = await listKnownModels(dataDir)
  const builtin = await builtinModels(builtinDirectory())
  const downloads = await unfinishedDownloads(dataDir)
  const models = await Promise.all([
    ...builtin.map(async (name): Promise<ListedModel> => {
      const manifest = await readManifest(storeDirectory(dataDir, name)).catch(() => null)
      return { name, from: 'built in', kind: 'built-in', ...factsOf(manifest), problem: null }
    }),
    ...known.map(async (one): Promise<ListedModel> => {
      const rest = { name: one.name, from: describeOrigin(one.origin), kind: 'added' } as const
      try {
        const { manifest } = await openKnownModel(dataDir, one)
        return { ...rest, ...factsOf(manifest), problem: null }
      } catch (thrown) {
        return { ...rest, ...factsOf(null), problem: toCrowdError(thrown).message }
      }
    }),
  ])
  return [...models, ...downloads.map(listedDownload)]
}

function listedDownload({ repo, commit, bytes }: KeptDownload): ListedModel {
  const from = `${repo}@${commit.slice(0, 8)}`
  return { name: repo, from, kind: 'download', ...factsOf(null), bytes, problem: null }
}

function factsOf(
  manifest: Manifest | null,
): Pick<ListedModel, 'dtype' | 'bytes' | 'contextLength'> {
  if (manifest === null) return { dtype: null, bytes: 0, contextLength: null }
  const { dtype, contextLength } = manifest
  return { dtype, bytes: storedBytes(manifest), contextLength }
}

export function listLines(models: readonly ListedModel[], columns: number): string[] {
  const rows = models.map(({ name, from, kind, dtype, bytes, contextLength, problem }) => [
    plain(name),
    dtype ?? '–',
    bytes === 0 ? '–' : formatBytes(bytes),
    contextLength === null ? '–' : String(contextLength),
    plain(problem === null ? originOf(kind, from) : `DAMAGED: ${problem}`),
  ])
  return table([['NAME', 'DTYPE', 'ON DISK', 'CONTEXT', 'FROM'], ...rows], columns)
}

function originOf(kind: ListedModel['kind'], from: string): string {
  return kind === 'download' ? `${from}, an unfinished download: add it again, or remove it` : from
}
