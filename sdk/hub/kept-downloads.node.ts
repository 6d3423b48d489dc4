import { readdir, rm, rmdir, stat } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { lockFolder } from './folder-lock.node.ts'

/** What was fetched of a repository at a commit, and not made into a model yet. */
export type KeptDownload = {
  /** `org/name` */
  readonly repo: string
  readonly commit: string
  readonly directory: string
  /** On the disk: of a file that is written in ranges, what is there. */
  readonly bytes: number
}

const SEPARATOR = '--'
const COMMIT = /^[0-9a-f]{7,64}$/

/** Where the files of a repository at a commit are downloaded to. */
export function downloadDirectory(dataDir: string, repo: string, commit: string): string {
  return join(downloadsDirectory(dataDir), repo.replace('/', SEPARATOR), commit)
}

export function downloadsDirectory(dataDir: string): string {
  return join(dataDir, 'downloads')
}

/** Every download below a data folder, by name. */
export async function listDownloads(dataDir: string): Promise<KeptDownload[]> {
  const root = downloadsDirectory(dataDir)
  const found: KeptDownload[] = []
  for (const folder of (await readdir(root).catch(() => [])).sort()) {
    // No part of a hub's names has two dashes.
    const repo = folder.replace(SEPARATOR, '/')
    for (const commit of (await readdir(join(root, folder)).catch(() => [])).sort()) {
      if (!repo.includes('/') || !COMMIT.test(commit)) continue
      const directory = join(root, folder, commit)
      found.push({ repo, commit, directory, bytes: await folderBytes(directory) })
    }
  }
  return found
}

/** With the folder of its repository, once that is empty. @throws CrowdError bad-option while somebody downloads into it */
export async function removeDownload(directory: string): Promise<void> {
  const isThere = (await stat(directory).catch(() => null)) !== null
  const free = isThere ? await lockFolder(directory) : null
  await rm(directory, { recursive: true, force: true })
  await free?.()
  await rmdir(dirname(directory)).catch(() => undefined)
}

/** What the files below a folder take on the disk. */
export async function folderBytes(folder: string): Promise<number> {
  const names = await readdir(folder, { recursive: true }).catch(() => [])
  const sizes = await Promise.all(
    names.map(async (name) => {
      const info = await stat(join(folder, name)).catch(() => null)
      return info?.isFile() === true ? Math.min(info.size, info.blocks * 512) : 0
    }),
  )
  return sizes.reduce((sum, bytes) => sum + bytes, 0)
}
