import { spawn } from 'node:child_process'
import { existsSync } from 'node:fs'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { withLock } from '../../tools/bootstrap/setup-lock.mjs'

let folder = ''
let path = ''

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'crowdinfer-lock-'))
  path = join(folder, 'below', 'setup.lock')
})
afterEach(() => rm(folder, { recursive: true, force: true }))

test('one at a time, in this process and in others; the lock is gone afterwards', async () => {
  const log = join(folder, 'log')
  const script = `
    import { appendFileSync } from 'node:fs'
    import { withLock } from ${JSON.stringify(new URL('../../tools/bootstrap/setup-lock.mjs', import.meta.url).href)}
    await withLock(${JSON.stringify(path)}, async () => {
      appendFileSync(${JSON.stringify(log)}, 'in ')
      await new Promise((resolve) => setTimeout(resolve, 50))
      appendFileSync(${JSON.stringify(log)}, 'out ')
    })`
  const runs = Array.from({ length: 4 }, async () => {
    const child = spawn(process.execPath, ['--input-type=module', '-e', script], {
      stdio: 'inherit',
    })
    return new Promise((resolve) => child.on('exit', resolve))
  })
  expect(await Promise.all(runs)).toEqual([0, 0, 0, 0])
  expect(await readFile(log, 'utf8')).toBe('in out '.repeat(4))
  expect(existsSync(path)).toBe(false)
})

test('a failure frees the lock, and a lock of a dead process is taken over', async () => {
  const failing = withLock(path, () => Promise.reject(new Error('no network')))
  await expect(failing).rejects.toThrow('no network')
  const child = spawn(process.execPath, ['-e', ''])
  await new Promise((resolve) => child.on('exit', resolve))
  await writeFile(path, String(child.pid))
  let done = false
  await withLock(path, () => {
    done = true
    return Promise.resolve()
  })
  expect(done).toBe(true)
})

test('a wait has a limit and says what to do', async () => {
  await withLock(path, async () => {
    let waits = 0
    const second = withLock(path, () => Promise.resolve(), { limitMs: 0, onWait: () => waits++ })
    await expect(second).rejects.toThrow('delete')
    expect(waits).toBeLessThanOrEqual(1)
  })
})
