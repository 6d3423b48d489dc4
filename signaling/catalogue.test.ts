import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { bytesPerWeight } from '../sdk/core/plan/dtype-bytes.ts'
import { readCatalogue } from './catalogue.ts'

test('the catalogue is what its schema says, each model once', async () => {
  const entries = await readCatalogue()
  expect(entries.length).toBeGreaterThanOrEqual(15)
  expect(new Set(entries.map(({ id }) => id)).size).toBe(entries.length)
})

test('sizes follow from the parameters', async () => {
  for (const { id, parameters, bytes, ...entry } of await readCatalogue()) {
    const tables = entry.hiddenSize * entry.vocabSize * (entry.tied ? 1 : 2)
    for (const dtype of ['q4', 'q8', 'f16'] as const) {
      const inTables = tables * bytesPerWeight(dtype, 'head')
      const inLayers = (parameters - tables) * bytesPerWeight(dtype, 'layer')
      expect(bytes[dtype], `${id} ${dtype}`).toBe(Math.round(inTables + inLayers))
    }
  }
})

test('tables and layers leave room for each other', async () => {
  for (const entry of await readCatalogue()) {
    const { id, parameters, hiddenSize, vocabSize, tied, layers, activeParameters } = entry
    const tables = hiddenSize * vocabSize * (tied ? 1 : 2)
    const perLayer = (parameters - tables - hiddenSize) / layers
    // The rest of a transformer is a whole number of weights in each layer, and no less than its attention.
    expect(Number.isInteger(perLayer), id).toBe(true)
    expect(perLayer, id).toBeGreaterThan(2 * hiddenSize * entry.kvHeads * entry.headSize)
    if (activeParameters !== undefined) expect(activeParameters, id).toBeLessThan(parameters / 2)
  }
})

test('a damaged catalogue is named', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'crowdinfer-catalogue-'))
  const path = join(folder, 'catalogue.json')
  await writeFile(path, JSON.stringify({ format: 1, models: [{ id: 'org/name' }] }))
  await expect(readCatalogue(path)).rejects.toMatchObject({ code: 'model-invalid' })
  await rm(folder, { recursive: true })
})
