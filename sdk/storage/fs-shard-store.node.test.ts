import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, describe, expect, it } from 'vitest'
import { describeShardStoreContract } from '../../test/contracts/shard-store.contract.ts'
import type { ShardStore } from './shard-store.ts'
import { createFsShardStore } from './fs-shard-store.node.ts'
import { hashBytes } from './hash.ts'

const directories = new Map<ShardStore, string>()

async function make(): Promise<ShardStore> {
  const directory = join(await mkdtemp(join(tmpdir(), 'crowdinfer-')), 'pieces')
  const store = createFsShardStore(directory)
  directories.set(store, directory)
  return store
}

const directoryOf = (store: ShardStore): string => directories.get(store) ?? '/nowhere'

afterAll(async () => {
  for (const directory of directories.values()) {
    await rm(join(directory, '..'), { recursive: true, force: true })
  }
})

describeShardStoreContract('the file store', {
  make,
  reopen: (store) => Promise.resolve(createFsShardStore(directoryOf(store))),
  corrupt: async (store, hash) => {
    const path = join(directoryOf(store), hash)
    const bytes = await readFile(path)
    bytes[5] = (bytes[5] ?? 0) ^ 1
    await writeFile(path, bytes)
  },
})

describe('createFsShardStore', () => {
  it('shows no partial write, and removes what a crash left behind', async () => {
    const store = await make()
    const directory = directoryOf(store)
    const bytes = Uint8Array.of(1, 2, 3)
    const hash = await hashBytes(bytes)
    await store.write(hash, bytes)
    await writeFile(join(directory, `${hash}.x.partial`), 'half')
    const again = createFsShardStore(directory)
    expect(await again.list()).toEqual([hash])
    expect((await again.usage()).usedBytes).toBe(3)
    await again.write(hash, bytes)
    expect(await readdir(directory)).toEqual([hash])
  })

  it('does not create anything by being looked at', async () => {
    const store = createFsShardStore('/nowhere/at/all')
    expect(await store.list()).toEqual([])
    expect(await store.usage()).toMatchObject({ usedBytes: 0, freeBytes: null })
  })

  it('says that storage failed where it can not write', async () => {
    const store = createFsShardStore('/dev/null/pieces')
    const bytes = Uint8Array.of(1)
    await expect(store.write(await hashBytes(bytes), bytes)).rejects.toMatchObject({
      code: 'storage-failed',
    })
  })
})
