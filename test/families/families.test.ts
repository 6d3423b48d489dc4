import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { parseDecoder } from '../../sdk/core/families/parse-decoder.ts'
import { FAMILIES } from '../../sdk/core/families/read-config.ts'
import { isRecord } from '../../sdk/core/model/json-fields.ts'
import type { WeightDtype } from '../../sdk/core/model/manifest.ts'
import { compare } from './compare.ts'
import { listReferences, readReference } from './reference.ts'
import { isRight, toleranceOf } from './tolerance.ts'

const checkpoints = (await listReferences()).filter(({ source }) => source === 'safetensors')
type Entry = (typeof checkpoints)[number]
const LIMIT_MS = 120_000

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
    (entry) => expectRight(entry, 'f32'),
    LIMIT_MS,
  )

  it.each(checkpoints)(
    '$name in q4 loses no more than products of int8 do',
    (entry) => expectRight(entry, 'q4'),
    LIMIT_MS,
  )

  it.each(checkpoints)(
    '$name in q8 stays near, and nearly always makes the same choice',
    (entry) => expectRight(entry, 'q8'),
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

/** Logits, choices, and the same whole and split, as `npm run families` wants them. */
async function expectRight(entry: Entry, dtype: WeightDtype): Promise<void> {
  const row = await compare(await readReference(entry), dtype)
  expect(row.maxLogitError).toBeLessThanOrEqual(toleranceOf(row) ?? Infinity)
  expect(row.splitEqualsWhole).toBe(true)
  expect(isRight(row), JSON.stringify(row)).toBe(true)
}
