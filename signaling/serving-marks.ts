import { randomUUID } from 'node:crypto'
import { readdir, rm, utimes, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { isHeld } from '../sdk/hub/folder-lock.node.ts'

const PREFIX = '.serving-'
const TOUCH_MS = 1_000

export type ServingMarks = {
  /** Looks again which models those are. */
  refresh(): Promise<void>
  /** Takes the marks away. Idempotent. */
  close(): Promise<void>
}

/**
 * Leaves a file of its own in the folders of the models that it serves, so that nobody deletes their pieces.
 * It is touched every second: one that a killed process left counts for no more than a few.
 */
export async function keepServingMarks(
  directories: () => readonly string[],
): Promise<ServingMarks> {
  const name = `${PREFIX}${randomUUID()}`
  let marked: ReadonlySet<string> = new Set()
  let isClosed = false
  let last: Promise<void> = Promise.resolve()

  async function look(): Promise<void> {
    const wanted = new Set(isClosed ? [] : directories())
    const gone = [...marked].filter((directory) => !wanted.has(directory))
    marked = wanted
    // A folder that can't be written to can't be deleted from either.
    await Promise.allSettled([
      ...gone.map((directory) => rm(join(directory, name), { force: true })),
      ...[...wanted].map((directory) => touch(join(directory, name))),
    ])
  }

  const refresh = (): Promise<void> => (last = last.then(look))
  await refresh()
  const timer = setInterval(() => void refresh(), TOUCH_MS)
  timer.unref()
  return {
    refresh,
    close() {
      isClosed = true
      clearInterval(timer)
      return refresh()
    },
  }
}

/** Whether a running host serves the model in this folder. */
export async function isServed(directory: string): Promise<boolean> {
  const names = await readdir(directory).catch(() => [])
  const marks = names.filter((name) => name.startsWith(PREFIX))
  const held = await Promise.all(marks.map((name) => isHeld(join(directory, name))))
  return held.includes(true)
}

async function touch(path: string): Promise<void> {
  const now = new Date()
  await utimes(path, now, now).catch(() => writeFile(path, String(process.pid)))
}
