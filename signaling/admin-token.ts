import { randomBytes } from 'node:crypto'
import { join } from 'node:path'
import { readText, writePrivate } from './private-file.ts'

/** 256 bits in base64url. */
const SHAPE = /^[\w-]{43}$/

export function adminTokenPath(dataDir: string): string {
  return join(dataDir, 'admin-token')
}

/** The token that was made for a data folder, null before a host used it. @throws CrowdError storage-failed */
export async function readAdminToken(dataDir: string): Promise<string | null> {
  const kept = (await readText(adminTokenPath(dataDir)))?.trim()
  return kept !== undefined && SHAPE.test(kept) ? kept : null
}

/** What proves the operator of a host; made on first use and kept. @throws CrowdError storage-failed */
export async function adminToken(dataDir: string): Promise<string> {
  const kept = await readAdminToken(dataDir)
  if (kept !== null) return kept
  const token = randomBytes(32).toString('base64url')
  await writePrivate(adminTokenPath(dataDir), `${token}\n`)
  return token
}
