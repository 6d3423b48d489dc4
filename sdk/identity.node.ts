import { randomBytes } from 'node:crypto'
import { mkdir, readFile, rename, rm, stat, writeFile } from 'node:fs/promises'
import { hostname, uptime } from 'node:os'
import { join } from 'node:path'
import { CrowdError, toCrowdError } from './core/errors.ts'
import type { PeerId } from './core/ids.ts'
import { writeAtomically } from './storage/atomic-file.node.ts'

/** Who a worker is to the host, as long as it holds it. */
export type ClaimedIdentity = {
  readonly peer: PeerId
  readonly token: string
  /** Lets another worker take it. Idempotent. */
  release(): Promise<void>
}

/** Workers that share one data folder on one machine. */
const SLOTS_MAX = 64
/** A lock without its content is being written right now, unless it is older. */
const WRITING_MS = 5_000

type Owner = { readonly pid: number; readonly startedAt: number; readonly nonce: string }

/**
 * The first identity in `directory` that no running worker of this machine holds; made where there is none. So
 * one worker keeps its identity over restarts, and two at once have two. Containers that share a folder differ
 * by their host name.
 * @throws CrowdError storage-failed
 */
export async function claimIdentity(directory: string): Promise<ClaimedIdentity> {
  const machine = hostname().replace(/[^\w-]+/g, '_') || 'machine'
  try {
    await mkdir(directory, { recursive: true, mode: 0o700 })
    for (let slot = 1; slot <= SLOTS_MAX; slot += 1) {
      const name = `${machine}-${slot}`
      const release = await lock(join(directory, `${name}.lock`))
      if (release !== null) return { ...(await readOrMake(directory, `${name}.json`)), release }
    }
  } catch (thrown) {
    const { message } = toCrowdError(thrown)
    throw new CrowdError('storage-failed', `no identity in ${directory}: ${message}`, {
      cause: thrown,
    })
  }
  throw new CrowdError('storage-failed', `${SLOTS_MAX} workers share ${directory} already`)
}

async function readOrMake(
  directory: string,
  name: string,
): Promise<{ readonly peer: PeerId; readonly token: string }> {
  const kept = parse(await readFile(join(directory, name), 'utf8').catch(() => ''))
  const { peer, token } = kept
  if (typeof peer === 'string' && typeof token === 'string') return { peer: peer as PeerId, token }
  const made = {
    peer: randomBytes(10).toString('hex') as PeerId,
    token: randomBytes(16).toString('hex'),
  }
  await writeAtomically(directory, name, JSON.stringify(made))
  return made
}

/** Takes the lock file; null where a running worker has it. */
async function lock(path: string): Promise<(() => Promise<void>) | null> {
  const mine: Owner = {
    pid: process.pid,
    startedAt: startedAt(),
    nonce: randomBytes(8).toString('hex'),
  }
  // The second try is for a lock that a dead worker left.
  for (let attempt = 0; attempt < 2; attempt += 1) {
    try {
      await writeFile(path, JSON.stringify(mine), { flag: 'wx', mode: 0o600 })
      return async () => {
        if ((await readOwner(path))?.nonce === mine.nonce) await rm(path, { force: true })
      }
    } catch (thrown) {
      if (!hasCode(thrown, 'EEXIST')) throw thrown
    }
    if (await isHeld(path)) return null
    await removeDead(path, mine.nonce)
  }
  return null
}

async function isHeld(path: string): Promise<boolean> {
  const owner = await readOwner(path)
  if (owner !== null) return isAlive(owner)
  const info = await stat(path).catch(() => null)
  return info !== null && Date.now() - info.mtimeMs < WRITING_MS
}

/** By a rename, which only one of several can do; one that takes a fresh lock in its place gives it back. */
async function removeDead(path: string, nonce: string): Promise<void> {
  const aside = `${path}.${nonce}`
  try {
    await rename(path, aside)
  } catch (thrown) {
    if (hasCode(thrown, 'ENOENT')) return
    throw thrown
  }
  const taken = await readOwner(aside)
  if (taken !== null && isAlive(taken)) await rename(aside, path)
  else await rm(aside, { force: true })
}

function isAlive({ pid, startedAt: since }: Owner): boolean {
  if (pid === process.pid) return since === startedAt()
  // The numbers of processes begin anew with the machine.
  if (since < Date.now() - uptime() * 1_000 - WRITING_MS) return false
  try {
    process.kill(pid, 0)
    return true
  } catch (thrown) {
    return hasCode(thrown, 'EPERM')
  }
}

/** When this process began, ms since 1970: tells it from an earlier one with the same number. */
function startedAt(): number {
  return Math.round(performance.timeOrigin)
}

async function readOwner(path: string): Promise<Owner | null> {
  const { pid, startedAt: since, nonce } = parse(await readFile(path, 'utf8').catch(() => ''))
  const isOwner = typeof pid === 'number' && typeof since === 'number' && typeof nonce === 'string'
  return isOwner ? { pid, startedAt: since, nonce } : null
}

/** The fields of a JSON object; none where the text is no such thing. */
function parse(text: string): Readonly<Record<string, unknown>> {
  try {
    const value: unknown = JSON.parse(text)
    // An object by the check; its fields are looked at before they are used.
    return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : {}
  } catch {
    return {}
  }
}

function hasCode(thrown: unknown, code: string): boolean {
  return thrown instanceof Error && 'code' in thrown && thrown.code === code
}
