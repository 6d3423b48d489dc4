import { describe, expect, it } from 'vitest'
import { describeShardStoreContract } from '../../test/contracts/shard-store.contract.ts'
import { CrowdError } from '../core/errors.ts'
import { createFallbackShardStore } from './fallback-shard-store.ts'
import { hashBytes } from './hash.ts'
import { createMemoryShardStore } from './memory-shard-store.ts'
import type { ShardStore } from './shard-store.ts'

describeShardStoreContract('the memory store', {
  make: () => Promise.resolve(createMemoryShardStore()),
  reopen: null,
  corrupt: null,
})

function failingStore(code: 'storage-failed' | 'storage-full'): ShardStore {
  const fail = (): Promise<never> => Promise.reject(new CrowdError(code, 'no'))
  return { has: fail, read: fail, write: fail, delete: fail, list: fail, usage: fail }
}

describe('the fallback store', () => {
  const reasons: string[] = []

  describeShardStoreContract('a store whose storage is blocked', {
    make: () => Promise.resolve(createFallbackShardStore(failingStore('storage-failed'))),
    reopen: null,
    corrupt: null,
  })

  it('goes on in memory, says so once, and is not persistent', async () => {
    const store = createFallbackShardStore(failingStore('storage-failed'), (reason) =>
      reasons.push(reason),
    )
    const bytes = Uint8Array.of(1, 2, 3)
    const hash = await hashBytes(bytes)
    await store.write(hash, bytes)
    expect(await store.read(hash)).toEqual(bytes)
    expect(await store.usage()).toMatchObject({ persistent: false, usedBytes: 3 })
    expect(reasons).toEqual(['no'])
  })

  it('does not hide a full disk in memory', async () => {
    const store = createFallbackShardStore(failingStore('storage-full'))
    const bytes = Uint8Array.of(1, 2, 3)
    await expect(store.write(await hashBytes(bytes), bytes)).rejects.toMatchObject({
      code: 'storage-full',
    })
  })
})

describe('hashBytes', () => {
  it('gives the published SHA-256, with crypto.subtle and without', async () => {
    const abc = new TextEncoder().encode('abc')
    const expected = 'ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad'
    expect(await hashBytes(abc)).toBe(expected)
    expect(await hashBytes(abc, null)).toBe(expected)
    const shared = new Uint8Array(new SharedArrayBuffer(3))
    shared.set(abc)
    expect(await hashBytes(shared)).toBe(expected)
  })
})
