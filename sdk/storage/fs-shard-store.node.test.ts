import { mkdir, mkdtemp, readdir, rm, utimes, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, describe, expect, it } from 'vitest'
import { describeShardStoreContract } from '../../test/contracts/shard-store.contract.ts'
import type { PieceHash } from '../core/ids.ts'
import { fetchPieces, pieceSource } from './download.ts'
import { openFsShardStore } from './fs-shard-store.node.ts'
import { hashBytes } from './hash.ts'
import type { ShardStore } from './shard-store.ts'

const root = await mkdtemp(join(tmpdir(), 'crowdinfer-shards-'))
afterAll(() => rm(root, { recursive: true, force: true }))

const folders = new Map<ShardStore, string>()
let made = 0

async function openIn(folder: string): Promise<ShardStore> {
  const store = await openFsShardStore(folder)
  folders.set(store, folder)
  return store
}

const freshFolder = (): string => join(root, String((made += 1)))
const folderOf = (store: ShardStore): string => folders.get(store) ?? ''

describeShardStoreContract('the file store', {
  make: () => openIn(freshFolder()),
  reopen: (store) => openIn(folderOf(store)),
  corrupt: (store, hash) => writeFile(join(folderOf(store), hash), 'damaged'),
})

async function piece(seed: number, size = 1_000): Promise<{ hash: PieceHash; bytes: Uint8Array }> {
  const bytes = Uint8Array.from({ length: size }, (_, index) => (index * 7 + seed) % 256)
  return { hash: await hashBytes(bytes), bytes }
}

describe('the file store', () => {
  it('is shared: what one process writes the others have, and writers do not spoil each other', async () => {
    const folder = freshFolder()
    const stores = await Promise.all([openIn(folder), openIn(folder), openIn(folder)])
    const pieces = await Promise.all([1, 2, 3, 4].map((seed) => piece(seed, 300_000)))
    await Promise.all(
      stores.flatMap((store) => pieces.map(({ hash, bytes }) => store.write(hash, bytes))),
    )
    for (const store of stores) {
      for (const { hash, bytes } of pieces) {
        expect(Buffer.compare((await store.read(hash)) ?? new Uint8Array(), bytes)).toBe(0)
      }
      expect(await store.list()).toHaveLength(pieces.length)
    }
  })

  it('takes half a file for no piece: it is fetched again', async () => {
    const { hash, bytes } = await piece(1)
    const folder = freshFolder()
    const store = await openIn(folder)
    await writeFile(join(folder, hash), bytes.subarray(0, 500))
    expect(await store.read(hash)).toBeNull()
    expect(await store.has(hash)).toBe(false)
  })

  it('removes what a crash left, and nothing that another process is still writing', async () => {
    const folder = freshFolder()
    await mkdir(folder, { recursive: true })
    await writeFile(join(folder, '.tmp-old'), 'x')
    await utimes(join(folder, '.tmp-old'), 1_000, 1_000)
    await writeFile(join(folder, '.tmp-new'), 'x')
    await openIn(folder)
    expect(await readdir(folder)).toEqual(expect.arrayContaining(['.tmp-new']))
    expect(await readdir(folder)).not.toContain('.tmp-old')
  })

  it('says before a download what is missing on a full disk', async () => {
    const store = await openFsShardStore(freshFolder(), { freeBytes: () => Promise.resolve(100) })
    const { hash } = await piece(1)
    let requests = 0
    const fetching = fetchPieces({
      pieces: [{ sha256: hash, bytes: 1_000 }],
      store,
      sources: [pieceSource('host', 'http://host.invalid/')],
      fetch: () => {
        requests += 1
        return Promise.reject(new Error('not to be asked'))
      },
    })
    await expect(fetching).rejects.toMatchObject({
      code: 'storage-full',
      message: expect.stringContaining('900 bytes') as unknown,
    })
    expect(requests).toBe(0)
  })

  it('knows the free space of the disk', async () => {
    const store = await openIn(freshFolder())
    expect((await store.usage()).freeBytes).toBeGreaterThan(0)
  })

  it('names the folder that cannot be used', async () => {
    const file = join(root, 'a-file')
    await writeFile(file, 'x')
    await expect(openFsShardStore(join(file, 'shards'))).rejects.toMatchObject({
      code: 'storage-failed',
      message: expect.stringContaining(file) as unknown,
    })
  })
})
