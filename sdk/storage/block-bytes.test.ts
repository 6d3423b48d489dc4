import { expect, it } from 'vitest'
import type { Block, Piece } from '../core/model/manifest.ts'
import { readBlock } from './block-bytes.ts'
import { hashBytes } from './hash.ts'
import { createMemoryShardStore } from './memory-shard-store.ts'

it('joins the pieces of a block, or names the ones that are missing', async () => {
  const store = createMemoryShardStore()
  const piece = async (...bytes: number[]): Promise<Piece> => {
    const content = Uint8Array.from(bytes)
    const sha256 = await hashBytes(content)
    await store.write(sha256, content)
    return { sha256, bytes: bytes.length }
  }
  const graph = await piece(9)
  const data = [await piece(1, 2, 3), await piece(4), await piece(1, 2, 3)]
  const block: Block = { kind: 'layer', graph, data, dataBytes: 7, f32Bytes: 0 }
  expect(await readBlock(store, block)).toEqual({
    kind: 'whole',
    graph: Uint8Array.of(9),
    data: Uint8Array.of(1, 2, 3, 4, 1, 2, 3),
  })
  await store.delete(graph.sha256)
  await store.delete(data[1]?.sha256 ?? graph.sha256)
  expect(await readBlock(store, block)).toEqual({ kind: 'missing', pieces: [graph, data[1]] })
})
