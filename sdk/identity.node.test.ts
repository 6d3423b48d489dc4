import { mkdtemp, readdir, readFile, rm, utimes, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { claimIdentity } from './identity.node.ts'

let folder = ''
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'crowdinfer-identity-'))
})
afterEach(() => rm(folder, { recursive: true, force: true }))

const lockFile = async (): Promise<string> => {
  const name = (await readdir(folder)).find((file) => file.endsWith('.lock')) ?? ''
  return join(folder, name)
}

test('a worker keeps its identity over restarts', async () => {
  const first = await claimIdentity(folder)
  await first.release()
  const again = await claimIdentity(folder)
  expect([again.peer, again.token]).toEqual([first.peer, first.token])
  await again.release()
  await again.release()
})

test('workers that run at the same time have different ones, however they start', async () => {
  const claims = await Promise.all(Array.from({ length: 6 }, () => claimIdentity(folder)))
  expect(new Set(claims.map(({ peer }) => peer)).size).toBe(6)
  await Promise.all(claims.map(({ release }) => release()))
  expect((await readdir(folder)).filter((name) => name.includes('.lock'))).toEqual([])
})

test('a worker that was killed leaves its identity to the next one', async () => {
  const killed = await claimIdentity(folder)
  const path = await lockFile()
  const owner = JSON.parse(await readFile(path, 'utf8')) as Record<string, unknown>
  // No process has this number.
  await writeFile(path, JSON.stringify({ ...owner, pid: 2 ** 30 }))
  const next = await claimIdentity(folder)
  expect(next.peer).toBe(killed.peer)
  // What the dead one would still do changes nothing.
  await killed.release()
  expect((await claimIdentity(folder)).peer).not.toBe(next.peer)
})

test('a process with the same number that began at another time is another one', async () => {
  const former = await claimIdentity(folder)
  const path = await lockFile()
  const owner = JSON.parse(await readFile(path, 'utf8')) as { startedAt: number }
  await writeFile(path, JSON.stringify({ ...owner, startedAt: owner.startedAt - 60_000 }))
  expect((await claimIdentity(folder)).peer).toBe(former.peer)
})

describe('containers on one volume, each with its own process numbers', () => {
  /** Long enough for a slow machine to touch in time. */
  const quick = { refreshMs: 20, staleMs: 3_000 }

  test('the second one, of the same number under the same name, does not take the first one’s', async () => {
    const first = await claimIdentity(folder, { ...quick, space: 'one' })
    const path = await lockFile()
    const owner = JSON.parse(await readFile(path, 'utf8')) as { startedAt: number }
    // The process began in another container, at another time.
    await writeFile(path, JSON.stringify({ ...owner, startedAt: owner.startedAt - 7 }))
    const second = await claimIdentity(folder, { ...quick, space: 'two' })
    expect(second.peer).not.toBe(first.peer)
    await Promise.all([first.release(), second.release()])
  })

  test('what a killed one left is free once nobody touches it any more', async () => {
    const killed = await claimIdentity(folder, { refreshMs: 1e6, space: 'one' })
    const next = await claimIdentity(folder, { refreshMs: 20, staleMs: 200, space: 'two' })
    expect(next.peer).toBe(killed.peer)
    await next.release()
  })

  test('an old lock is not waited for', async () => {
    const killed = await claimIdentity(folder, { refreshMs: 1e6, space: 'one' })
    const longAgo = new Date(Date.now() - 3_600_000)
    await utimes(await lockFile(), longAgo, longAgo)
    const patient = { refreshMs: 1e6, staleMs: 3_000_000, space: 'two' }
    expect((await claimIdentity(folder, patient)).peer).toBe(killed.peer)
  })
})

test('a lock that is just being written is somebody’s', async () => {
  const first = await claimIdentity(folder)
  await writeFile(await lockFile(), '')
  const second = await claimIdentity(folder)
  expect(second.peer).not.toBe(first.peer)
})

test('a damaged identity is made anew', async () => {
  const first = await claimIdentity(folder)
  await first.release()
  const [name = ''] = (await readdir(folder)).filter((file) => file.endsWith('.json'))
  await writeFile(join(folder, name), '{')
  const second = await claimIdentity(folder)
  expect(second.peer).not.toBe(first.peer)
  expect(second.token).toMatch(/^[0-9a-f]{32}$/)
})

test('a folder that cannot be made is named', async () => {
  const file = join(folder, 'file')
  await writeFile(file, '')
  await expect(claimIdentity(join(file, 'workers'))).rejects.toMatchObject({
    code: 'storage-failed',
    message: expect.stringContaining(file) as unknown,
  })
})
