// @ts-check
// One set-up of this folder at a time: several commands may be started at once in a fresh clone.
import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { dirname } from 'node:path'
import process from 'node:process'

const POLL_MS = 200

/**
 * Runs `work` while nobody else does under the same lock file. A lock whose process is gone is taken over.
 * @param {string} path of the lock file
 * @param {() => Promise<void>} work
 * @param {{ limitMs?: number, onWait?: () => void }} [options]
 */
export async function withLock(path, work, { limitMs = 15 * 60_000, onWait = () => {} } = {}) {
  const until = Date.now() + limitMs
  mkdirSync(dirname(path), { recursive: true })
  let waited = false
  while (!take(path)) {
    if (Date.now() > until) {
      throw new Error(
        `another set-up of this folder does not end; if there is none, delete ${path}`,
      )
    }
    if (!waited) onWait()
    waited = true
    await new Promise((resolve) => setTimeout(resolve, POLL_MS))
  }
  try {
    await work()
  } finally {
    rmSync(path, { force: true })
  }
}

/** @param {string} path */
function take(path) {
  try {
    writeFileSync(path, String(process.pid), { flag: 'wx' })
    return true
  } catch (error) {
    if (!isCode(error, 'EEXIST')) throw error
  }
  if (isAlive(Number(readOwner(path)))) return false
  rmSync(path, { force: true })
  return false
}

/** @param {string} path */
function readOwner(path) {
  try {
    return readFileSync(path, 'utf8')
  } catch {
    // It ended just now.
    return ''
  }
}

/** @param {number} pid */
function isAlive(pid) {
  // Just made and not written yet.
  if (pid === 0) return true
  try {
    process.kill(pid, 0)
    return true
  } catch (error) {
    // A process of somebody else's is alive too.
    return isCode(error, 'EPERM')
  }
}

/** @param {unknown} error @param {string} code */
function isCode(error, code) {
  return error instanceof Error && 'code' in error && error.code === code
}
