import { mkdtemp, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { createApiKeys, findKey } from './api-keys.ts'
import { runCli, type CliActions } from './cli.ts'
import { createKeyCheck } from './key-check.ts'
import { addKeyCommands } from './key-cli.ts'

const never = (thrown: unknown): never => {
  throw thrown
}

let data: string
beforeEach(async () => {
  data = await mkdtemp(join(tmpdir(), 'crowdinfer-keys-'))
})
afterEach(async () => {
  await rm(data, { recursive: true })
})

describe('keys', () => {
  test('a key is shown once: what is kept is private and does not hold it', async () => {
    const keys = createApiKeys(data)
    const added = await keys.add('laptop')
    expect(added.key).toMatch(/^sk-crowdinfer-[\w-]{43}$/)
    const [file = ''] = await readdir(join(data, 'api-keys'))
    const path = join(data, 'api-keys', file)
    expect(await readFile(path, 'utf8')).not.toContain(added.key.slice(14))
    expect((await stat(path)).mode & 0o077).toBe(0)
    const { key, ...kept } = added
    expect(await keys.list()).toEqual([kept])
    expect(findKey(await keys.list(), key)?.id).toBe(added.id)
    expect(findKey(await keys.list(), `${key}x`)).toBeNull()
    expect(findKey(await keys.list(), added.sha256)).toBeNull()
  })

  test('many keys added at once are all there', async () => {
    const added = await Promise.all(
      Array.from({ length: 20 }, (_, index) => createApiKeys(data).add(`k${index}`)),
    )
    const kept = await createApiKeys(data).list()
    expect(kept.map(({ id }) => id).sort()).toEqual(added.map(({ id }) => id).sort())
  })

  test('revoked by id or by a name that is its own', async () => {
    const keys = createApiKeys(data)
    const one = await keys.add('twice')
    const two = await keys.add('twice')
    await keys.add('once')
    await expect(keys.revoke('twice')).rejects.toThrow('2 keys are called so')
    await expect(keys.revoke('never')).rejects.toMatchObject({ code: 'bad-option' })
    await keys.revoke(one.id)
    await keys.revoke('once')
    expect((await keys.list()).map(({ id }) => id)).toEqual([two.id])
  })

  test('a damaged file is an error, not an open door', async () => {
    const keys = createApiKeys(data)
    const { id } = await keys.add('x')
    await writeFile(join(data, 'api-keys', `${id}.json`), '{')
    await expect(keys.list()).rejects.toMatchObject({ code: 'storage-failed' })
    // What an interrupted write leaves is no key.
    await writeFile(join(data, 'api-keys', `${id}.json`), JSON.stringify({}))
    await expect(keys.list()).rejects.toMatchObject({ code: 'storage-failed' })
    await rm(join(data, 'api-keys', `${id}.json`))
    await writeFile(join(data, 'api-keys', `${id}.json.77.new`), '{')
    expect(await keys.list()).toEqual([])
  })

  test('a running host sees a new key and a revoked one within a second, and reads no more often', async () => {
    const keys = createApiKeys(data)
    let now = 0
    let reads = 0
    const check = createKeyCheck({ list: () => ((reads += 1), keys.list()) }, () => now, never)
    expect(await check('x')).toEqual({ any: false, id: null })
    const { key, id } = await keys.add('x')
    await Promise.all([check(key), check(key)])
    expect(reads).toBe(1)
    now += 1_000
    expect(await check(key)).toEqual({ any: true, id })
    expect(await check('other')).toEqual({ any: true, id: null })
    await keys.revoke(id)
    now += 1_000
    expect(await check(key)).toEqual({ any: false, id: null })
    expect(reads).toBe(3)
  })

  test('a failure to read is told once a second at most, opens nothing, and passes', async () => {
    let now = 0
    let fails = true
    const told: unknown[] = []
    const disk = new Error('disk')
    const list = () => (fails ? Promise.reject(disk) : Promise.resolve([]))
    const check = createKeyCheck(
      { list },
      () => now,
      (thrown) => told.push(thrown),
    )
    await expect(check('x')).rejects.toThrow('disk')
    await expect(check('x')).rejects.toThrow('disk')
    expect(told).toEqual([disk])
    fails = false
    now += 1_000
    expect(await check('x')).toEqual({ any: false, id: null })
  })
})

describe('crowdinfer key', () => {
  const CLI = { version: '0', environment: {} }
  const actions = (lines: string[]): CliActions => ({
    start: () => Promise.reject(new Error('started')),
    commands: [(program) => addKeyCommands(program, (line) => lines.push(line))],
  })
  async function run(...args: string[]): Promise<string[]> {
    const lines: string[] = []
    await runCli(['key', ...args, '--data', data], actions(lines), CLI)
    return lines
  }

  test('add, list, revoke', async () => {
    expect(await run('list')).toEqual(['No keys.'])
    const [key = '', told] = await run('add', 'my\u001b[31m laptop')
    expect(told).toContain(`the host whose data folder is ${data}, and for no other`)
    expect(key).toMatch(/^sk-crowdinfer-/)
    const [line = ''] = await run('list')
    expect(line).toMatch(/^[0-9a-f]{8} {2}\S+Z {2}my\?\[31m laptop$/)
    expect(line).not.toContain(key.slice(14))
    await run('add', 'second')
    const revoked = await run('revoke', line.slice(0, 8))
    expect(revoked).toEqual([`Revoked ${line}`, expect.stringContaining(data)])
    const last = await run('revoke', 'second')
    expect(last.slice(1)).toEqual([
      expect.stringContaining(data),
      expect.stringMatching(
        /last key: now whoever has the pool’s secret .* in an open pool everybody/,
      ),
    ])
    expect(await run('list')).toEqual(['No keys.'])
  })

  test('a mistake is a wrong option', async () => {
    await expect(run('revoke', 'x')).rejects.toMatchObject({ code: 'bad-option' })
    const which = { code: 'bad-option', message: 'key: say add, list or revoke' }
    await expect(runCli(['key'], actions([]), CLI)).rejects.toMatchObject(which)
    await expect(runCli(['key', 'frobnicate'], actions([]), CLI)).rejects.toMatchObject(which)
    await expect(run('add', 'x'.repeat(61))).rejects.toMatchObject({ code: 'bad-option' })
  })
})
