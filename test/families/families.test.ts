import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { parseDecoder } from '../../sdk/core/families/parse-decoder.ts'
import { FAMILIES } from '../../sdk/core/families/read-config.ts'
import { isRecord } from '../../sdk/core/model/json-fields.ts'
import { compare } from './compare.ts'
import { listReferences, readReference } from './reference.ts'

const checkpoints = (await listReferences()).filter(({ source }) => source === 'safetensors')
const LIMIT_MS = 120_000
/** int8 activations, times layers. */
const INT8_TOLERANCE = 1.2
/** Their matrices lie on no 4-bit grid, so that quantising loses more than products do. */
const OFF_GRID = ['llama', 'llama-sharded-bf16']

describe('families', () => {
  it('have a checkpoint each that another implementation computed', async () => {
    const types = await Promise.all(
      checkpoints.map(async (entry) => {
        const { path } = await readReference(entry)
        const config: unknown = JSON.parse(await readFile(join(path, 'config.json'), 'utf8'))
        return isRecord(config) ? config['model_type'] : undefined
      }),
    )
    expect(types).toEqual(expect.arrayContaining(FAMILIES.map(({ modelType }) => modelType)))
  })

  it.each(checkpoints)(
    '$name in f32 gives the logits of transformers, split anywhere',
    async (entry) => {
      const row = await compare(await readReference(entry), 'f32')
      expect(row.maxLogitError).toBeLessThan(1e-4)
      expect(row).toMatchObject({ greedyAgreement: 1, splitEqualsWhole: true })
    },
    LIMIT_MS,
  )

  it.each(checkpoints)(
    '$name in q4 loses no more than products of int8 do',
    async (entry) => {
      const row = await compare(await readReference(entry), 'q4')
      if (!OFF_GRID.includes(entry.name)) {
        expect(row.maxLogitError).toBeLessThan(INT8_TOLERANCE)
        expect(row.greedyAgreement).toBeGreaterThan(0.85)
      }
      expect(row.splitEqualsWhole).toBe(true)
    },
    LIMIT_MS,
  )

  it.each(checkpoints)(
    '$name in q8 nearly always makes the same choice',
    async (entry) => {
      const row = await compare(await readReference(entry), 'q8')
      expect(row.greedyAgreement).toBeGreaterThan(0.85)
      expect(row.splitEqualsWhole).toBe(true)
    },
    LIMIT_MS,
  )

  it.each(checkpoints)('$name is understood as older files spell it', async (entry) => {
    const { path } = await readReference(entry)
    const read = async (file: string): Promise<unknown> =>
      JSON.parse(await readFile(join(path, file), 'utf8'))
    const published = parseDecoder(await read('config.published.json'))
    expect(published).toEqual(parseDecoder(await read('config.json')))
  })
})
