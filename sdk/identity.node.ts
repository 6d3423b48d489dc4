import { randomBytes } from 'node:crypto'
import { mkdir, readFile, readlink, rename, rm, stat, utimes, writeFile } from 'node:fs/promises'
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

type Owner = {
  readonly pid: number
  readonly startedAt: number
  readonly nonce: string
  /** Where `pid` means something; see processSpace. */
  readonly space: string
}

export type ClaimOptions = {
  /** Replaced in tests. */
  readonly space?: string
  /** A running worker touches its lock this often, */
  readonly refreshMs?: number
  /** and is dead, to those who cannot see its process, when it did not for this long. */
  readonly staleMs?: number
}

type Claimer = { readonly mine: Owner; readonly refreshMs: number; readonly staleMs: number }

/**
 * The first identity in `directory` that no running worker under this host name holds; made where there is none.
 * So one worker keeps its identity over restarts, and two at once have two. Containers on one volume may have the
 * same host name and the same process numbers: what another container locked is judged by whether the lock is
 * still touched, and waited for where that is not clear yet.
 * @throws CrowdError storage-failed
 */
export async function claimIdentity(
  directory: string,
  options: ClaimOptions = {},
): Promise<ClaimedIdentity> {
  const { space = await processSpace(), refreshMs = 1_000, staleMs = 5_000 } = options
  const machine = hostname().replace(/[^\w-]+/g, '_') || 'machine'
  try {
    await mkdir(directory, { recursive: true, mode: 0o700 })
    for (let slot = 1; slot <= SLOTS_MAX; slot += 1) {
      const name = `${machine}-${slot}`
      const mine: Owner = {
        pid: process.pid,
        startedAt: startedAt(),
        nonce: randomBytes(8).toString('hex'),
        space,
      }
      const release = await lock(join(directory, `${name}.lock`), { mine, refreshMs, staleMs })
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
async function lock(path: string, claimer: Claimer): Promise<(() => Promise<void>) | null> {
  const { mine } = claimer
  // The second try is for a lock that a dead worker left.
  for (let attempt = 0; attempt < 2; attempt += 1) {
    try {
      await writeFile(path, JSON.stringify(mine), { flag: 'wx', mode: 0o600 })
      return keepFresh(path, claimer)
    } catch (thrown) {
      if (!hasCode(thrown, 'EEXIST')) throw thrown
    }
    const owner = await readOwner(path)
    if (await isHeld(path, owner, claimer)) return null
    await removeDead(path, owner, mine.nonce)
  }
  return null
}

/** @returns ends it and frees the lock */
function keepFresh(path: string, { mine, refreshMs }: Claimer): () => Promise<void> {
  const isMine = async (): Promise<boolean> => (await readOwner(path))?.nonce === mine.nonce
  const touch = async (): Promise<void> => {
    const now = new Date()
    if (await isMine()) await utimes(path, now, now)
  }
  // A folder that cannot be written to for a while costs the lock at worst, which only others notice.
  const timer = setInterval(() => void touch().catch(() => undefined), refreshMs)
  timer.unref()
  return async () => {
    clearInterval(timer)
    if (await isMine()) await rm(path, { force: true })
  }
}

async function isHeld(path: string, owner: Owner | null, claimer: Claimer): Promise<boolean> {
  if (owner === null) return (await ageOf(path)) < WRITING_MS
  return owner.space === claimer.mine.space ? isAlive(owner) : isTouched(path, claimer)
}

/** Whether the lock is touched while one looks, for as long as it is not too old. */
async function isTouched(path: string, { refreshMs, staleMs }: Claimer): Promise<boolean> {
  const first = await modifiedAt(path)
  const until = performance.now() + staleMs
  while ((await ageOf(path)) < staleMs && performance.now() < until) {
    if ((await modifiedAt(path)) !== first) return true
    await new Promise((resolve) => setTimeout(resolve, refreshMs / 2))
  }
  return false
}

/** Milliseconds since 1970; none where the file is gone. */
async function modifiedAt(path: string): Promise<number | null> {
  return (await stat(path).catch(() => null))?.mtimeMs ?? null
}

async function ageOf(path: string): Promise<number> {
  return Date.now() - ((await modifiedAt(path)) ?? -Infinity)
}

/** By a rename, which only one of several can do; one that takes a fresh lock in its place gives it back. */
async function removeDead(path: string, dead: Owner | null, nonce: string): Promise<void> {
  const aside = `${path}.${nonce}`
  try {
    await rename(path, aside)
  } catch (thrown) {
    if (hasCode(thrown, 'ENOENT')) return
    throw thrown
  }
  const taken = await readOwner(aside)
  if (taken !== null && taken.nonce !== dead?.nonce) await rename(aside, path)
  else await rm(aside, { force: true })
}

/** Of a process in our own space. */
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

/** Tells apart containers and starts of the machine, whose process numbers say nothing to each other. */
async function processSpace(): Promise<string> {
  if (process.platform !== 'linux') return process.platform
  const boot = await readFile('/proc/sys/kernel/random/boot_id', 'utf8').catch(() => '')
  return `${boot.trim()} ${await readlink('/proc/self/ns/pid').catch(() => '')}`
}

/** When this process began, ms since 1970: tells it from an earlier one with the same number. */
function startedAt(): number {
  return Math.round(performance.timeOrigin)
}

async function readOwner(path: string): Promise<Owner | null> {
  const fields = parse(await readFile(path, 'utf8').catch(() => ''))
  const { pid, startedAt: since, nonce, space } = fields
  const isProcess = typeof pid === 'number' && typeof since === 'number'
  const isOwner = isProcess && typeof nonce === 'string' && typeof space === 'string'
  return isOwner ? { pid, startedAt: since, nonce, space } : null
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
