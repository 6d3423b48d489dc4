import { spawnSync } from 'node:child_process'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterEach, beforeEach, expect, test } from 'vitest'

const inRoot = (path: string): string => fileURLToPath(new URL(`../../${path}`, import.meta.url))

let folder = ''
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'crowdinfer-failures-'))
})
afterEach(() => rm(folder, { recursive: true, force: true }))

test('what failed is kept with the beginning of its error: tests, broken files, errors outside', async () => {
  await writeFile(
    join(folder, 'a.test.js'),
    `test('holds', () => expect(1).toBe(1))
     test('fails', () => expect(1).toBe(2))
     test('leaves an error behind', () => void Promise.reject(new Error('nobody waits')))`,
  )
  await writeFile(join(folder, 'b.test.js'), `throw new Error('not even loaded')`)
  const failures = join(folder, 'failures')
  const reporter = inRoot('tools/bootstrap/failures.mjs')
  const { status } = spawnSync(
    process.execPath,
    [
      inRoot('node_modules/vitest/vitest.mjs'),
      ...['run', '--globals', '--root', folder, `--reporter=${reporter}`],
    ],
    { env: { ...process.env, CROWDINFER_FAILURES: failures } },
  )
  expect(status).toBe(1)
  const lines = (await readFile(failures, 'utf8')).split('\n')
  expect(lines.filter((line) => !line.startsWith('  ')).sort()).toEqual([
    '',
    'a.test.js > fails',
    'b.test.js',
    'outside of the tests',
  ])
  expect(lines).toContain('  expected 1 to be 2 // Object.is equality')
  expect(lines).toContain('  nobody waits')
  expect(lines).toContain('  not even loaded')
})
