import { readFile, rm, stat, utimes, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { CrowdError } from '../core/errors.ts'

const LOCK_FILE = '.lock'
const TOUCH_MS = 1_000
/** Not touched for this long: whoever had it is gone. */
const STALE_MS = 10_000

/**
 * Two downloads into one folder would write over each other.
 * @returns frees the folder; idempotent
 * @throws CrowdError bad-option where another process has it
 */
export async function lockFolder(folder: string): Promise<() => Promise<void>> {
  const path = join(folder, LOCK_FILE)
  if (!(await take(path))) {
    const held = await isHeld(path)
    if (!held) await rm(path, { force: true })
    if (held || !(await take(path))) {
      throw new CrowdError('bad-option', `another crowdinfer is downloading into ${folder}`)
    }
  }
  const timer = setInterval(() => {
    const now = new Date()
    utimes(path, now, now).catch(() => undefined)
  }, TOUCH_MS)
  timer.unref()
  let isFree = false
  return async () => {
    clearInterval(timer)
    if (!isFree) await rm(path, { force: true })
    isFree = true
  }
}

async function take(path: string): Promise<boolean> {
  try {
    await writeFile(path, String(process.pid), { flag: 'wx' })
    return true
  } catch (thrown) {
    if (thrown instanceof Error && 'code' in thrown && thrown.code === 'EEXIST') return false
    throw thrown
  }
}

/**
 * Whether the file was touched lately by the process whose number it holds. A killed process leaves its lock; its number
 * tells at once, the time where that means nothing here.
 */
export async function isHeld(path: string): Promise<boolean> {
  const info = await stat(path).catch(() => null)
  if (info === null || Date.now() - info.mtimeMs > STALE_MS) return false
  const pid = Number(await readFile(path, 'utf8').catch(() => ''))
  // Empty: it is being written right now.
  if (pid === 0) return true
  try {
    process.kill(pid, 0)
    return true
  } catch (thrown) {
    return thrown instanceof Error && 'code' in thrown && thrown.code === 'EPERM'
  }
}
