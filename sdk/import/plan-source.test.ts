import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { writeGguf, type GgufTestTensor } from '../../test/support/gguf.ts'
import { TINY_ENTRIES, TINY_TENSORS, tinyTensor } from '../../test/support/tiny-gguf.ts'
import { openGguf } from './gguf-source.node.ts'
import { planSource, type PlannedSource } from './plan-source.ts'

let folder: string
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'crowdinfer-plan-'))
})
afterEach(() => rm(folder, { recursive: true, force: true }))

async function plan(...more: readonly GgufTestTensor[]): Promise<PlannedSource> {
  const path = join(folder, 'tiny.gguf')
  await writeFile(path, writeGguf(TINY_ENTRIES, [...TINY_TENSORS, ...more]))
  const source = await openGguf(path)
  try {
    return planSource(source, {})
  } finally {
    await source.close()
  }
}

describe('planning a source', () => {
  it('chooses the dtype that holds the weights', async () => {
    expect(await plan()).toMatchObject({ dtype: 'f32', decoder: { hiddenSize: 32 } })
  })

  it.each(['attn_output.bias', 'attn_v.bias', 'ffn_down.bias'])(
    'refuses a GGUF tensor that nothing would read: blk.0.%s',
    async (name) => {
      const bias = tinyTensor(`blk.0.${name}`, [name === 'attn_v.bias' ? 16 : 32], 12)
      await expect(plan(bias)).rejects.toThrow(
        `tiny: LlamaForCausalLM has no use for the tensor blk.0.${name}`,
      )
    },
  )

  it('names a bias whose fellows are missing', async () => {
    await expect(plan(tinyTensor('blk.0.ffn_up.bias', [64], 12))).rejects.toThrow(
      /lack the tensor model\.layers\.0\.mlp\.gate_proj\.bias/,
    )
  })
})
