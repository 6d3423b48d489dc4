import { describe, expect, it } from 'vitest'
import { FAMILIES } from '../../sdk/core/families/parse-decoder.ts'
import { compare } from './compare.ts'
import { checkpointNames, readReference } from './reference.ts'

const names = await checkpointNames()
const LIMIT_MS = 120_000

describe('families', () => {
  it('have a checkpoint each that another implementation computed', async () => {
    const references = await Promise.all(names.map((name) => readReference(name)))
    const types = new Set(references.map(({ modelType }) => modelType))
    expect(FAMILIES.map(({ modelType }) => modelType).filter((type) => !types.has(type))).toEqual(
      [],
    )
  })

  it.each(names)(
    '%s in f32 gives the logits of transformers, split anywhere',
    async (name) => {
      const reference = await readReference(name)
      const row = await compare(
        reference,
        { path: reference.directory, source: 'safetensors' },
        'f32',
      )
      expect(row.maxLogitError).toBeLessThan(1e-4)
      expect(row).toMatchObject({ greedyAgreement: 1, splitEqualsWhole: true })
    },
    LIMIT_MS,
  )
})
