import { cp, mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { builtinDirectory } from '../sdk/import/stored-model.node.ts'
import { createStoredLibrary } from './stored-library.ts'
import type { ModelLibrary } from './model-library.ts'

const SMALL = 'crowdtalk-0.3m'

let dataDir: string
let library: ModelLibrary
beforeEach(async () => {
  dataDir = await mkdtemp(join(tmpdir(), 'crowdinfer-library-'))
  library = createStoredLibrary({ builtinDir: builtinDirectory(), dataDir })
})
afterEach(async () => {
  await rm(dataDir, { recursive: true, force: true })
})

test('built-in models are known before they are cut, with their size', async () => {
  const list = await library.list()
  expect(list.map(({ name, isBuiltin, problem }) => [name, isBuiltin, problem])).toEqual([
    [SMALL, true, ''],
    ['crowdtalk-2.6m', true, ''],
  ])
  expect(list[0]?.size).toMatchObject({ layerCount: 4, contextLength: 512 })
  const steps: string[] = []
  const model = await library.open(SMALL, (step) => steps.push(step))
  expect(model).toMatchObject({ name: SMALL, isBuiltin: true })
  expect(model.manifest.id).toBe(SMALL)
  expect(steps).toEqual([
    `cutting ${SMALL} into blocks, unless that was done before`,
    ...[1, 2, 3, 4, 5, 6].map((done) => `cutting ${SMALL}: ${done} of 6 blocks are done`),
  ])
  // The second time there's nothing to cut.
  const again: string[] = []
  await library.open(SMALL, (step) => again.push(step))
  expect(again).toHaveLength(1)
  // Its own copy counts as the built-in model, not as another one.
  expect(await library.list()).toHaveLength(2)
})

test('models of the data folder are known, and those that can’t be served with the reason', async () => {
  const { directory, manifest } = await library.open(SMALL, () => undefined)
  const models = join(dataDir, 'models')
  await cp(directory, join(models, 'own'), { recursive: true })
  await cp(directory, join(models, 'torn'), { recursive: true })
  await rm(join(models, 'torn', 'pieces', manifest.blocks[2]?.data[0]?.sha256 ?? ''))
  await cp(directory, join(models, 'odd'), { recursive: true })
  await writeFile(join(models, 'odd', 'manifest.json'), '[]')
  await mkdir(join(models, 'unfinished', 'pieces'), { recursive: true })
  const list = await library.list()
  expect(list.slice(2).map(({ name, problem }) => [name, problem !== ''])).toEqual([
    ['odd', true],
    ['own', false],
    ['torn', false],
  ])
  expect(await library.open('own', () => undefined)).toMatchObject({
    isBuiltin: false,
    manifest: { revision: manifest.revision },
  })
  for (const [name, code] of [
    ['torn', 'model-invalid'],
    ['odd', 'model-invalid'],
    ['unfinished', 'model-not-found'],
    ['../models/own', 'model-not-found'],
    ['', 'model-not-found'],
  ] as const)
    await expect(library.open(name, () => undefined)).rejects.toMatchObject({ code })
})
