import { mkdir, mkdtemp, readdir, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { startTestHost } from '../test/support/host-on-disk.ts'
import { isServed, keepServingMarks } from './serving-marks.ts'

let folder: string
const one = (): string => join(folder, 'one')
const two = (): string => join(folder, 'two')

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'crowdinfer-marks-'))
  await mkdir(one())
  await mkdir(two())
})
afterEach(() => rm(folder, { recursive: true, force: true }))

test('a model is served while any host says so, and no longer', async () => {
  let served = [one()]
  const marks = await keepServingMarks(() => served)
  const others = await keepServingMarks(() => [one()])
  expect([await isServed(one()), await isServed(two())]).toEqual([true, false])
  served = [two()]
  await marks.refresh()
  expect([await isServed(one()), await isServed(two())]).toEqual([true, true])
  await others.close()
  expect(await isServed(one())).toBe(false)
  await marks.close()
  await marks.close()
  expect(await readdir(two())).toEqual([])
})

test('what a killed host left, and a folder that is gone, count for nothing', async () => {
  // No process has this number.
  await writeFile(join(one(), '.serving-left'), String(2 ** 30))
  expect(await isServed(one())).toBe(false)
  const marks = await keepServingMarks(() => [join(folder, 'gone')])
  expect(await isServed(join(folder, 'gone'))).toBe(false)
  await marks.close()
})

test('a host marks what it serves until it closes', async () => {
  const host = await startTestHost()
  const { directory } = host.started.model
  expect(await isServed(directory)).toBe(true)
  await host.host.close()
  expect(await isServed(directory)).toBe(false)
  await host.close()
})
