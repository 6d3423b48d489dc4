import { describe, expect, it } from 'vitest'
import type { PieceHash } from '../../sdk/core/ids.ts'
import { hashBytes } from '../../sdk/storage/hash.ts'
import type { ShardStore } from '../../sdk/storage/shard-store.ts'

export type ShardStoreContractOptions = {
  /** An empty store. */
  readonly make: () => Promise<ShardStore>
  /** The same store after a restart; null where pieces do not outlive it. */
  readonly reopen: ((store: ShardStore) => Promise<ShardStore>) | null
  /** Spoils the bytes of a stored piece behind the store's back; null where nobody can. */
  readonly corrupt: ((store: ShardStore, hash: PieceHash) => Promise<void>) | null
}

/** What every ShardStore does. */
export function describeShardStoreContract(name: string, options: ShardStoreContractOptions): void {
  const { make, reopen, corrupt } = options

  async function piece(seed: number, size = 1000): Promise<{ hash: PieceHash; bytes: Uint8Array }> {
    const bytes = Uint8Array.from({ length: size }, (_, i) => (i * 31 + seed) % 251)
    return { hash: await hashBytes(bytes), bytes }
  }

  describe(`${name} keeps the ShardStore contract`, () => {
    it('gives back what was written', async () => {
      const store = await make()
      const { hash, bytes } = await piece(1)
      expect(await store.has(hash)).toBe(false)
      expect(await store.read(hash)).toBeNull()
      await store.write(hash, bytes)
      expect(await store.has(hash)).toBe(true)
      expect(await store.read(hash)).toEqual(bytes)
      expect(await store.list()).toEqual([hash])
    })

    it('owns what it holds: neither writer nor reader can change it', async () => {
      const store = await make()
      const { hash, bytes } = await piece(2)
      const written = bytes.slice()
      const writing = store.write(hash, written)
      written.fill(0)
      await writing
      const read = await store.read(hash)
      read?.fill(0)
      expect(await store.read(hash)).toEqual(bytes)
      expect(read?.buffer.byteLength).toBe(bytes.byteLength)
    })

    it('stores a view as its own bytes', async () => {
      const store = await make()
      const { hash, bytes } = await piece(3)
      const large = new Uint8Array(5000)
      large.set(bytes, 77)
      await store.write(hash, large.subarray(77, 77 + bytes.byteLength))
      expect(await store.read(hash)).toEqual(bytes)
      expect((await store.usage()).usedBytes).toBe(bytes.byteLength)
    })

    it('never holds bytes under a hash that is not theirs', async () => {
      const store = await make()
      const [one, other] = [await piece(4), await piece(5)]
      await expect(store.write(one.hash, other.bytes)).rejects.toMatchObject({
        code: 'piece-corrupt',
      })
      await expect(store.write(one.hash, one.bytes.slice(0, 999))).rejects.toMatchObject({
        code: 'piece-corrupt',
      })
      expect(await store.has(one.hash)).toBe(false)
      expect(await store.list()).toEqual([])
    })

    it('counts what it holds, once for each piece', async () => {
      const store = await make()
      const [one, other] = [await piece(6), await piece(7, 50)]
      await Promise.all([store.write(one.hash, one.bytes), store.write(one.hash, one.bytes)])
      await store.write(other.hash, other.bytes)
      expect((await store.usage()).usedBytes).toBe(1050)
      expect((await store.list()).toSorted()).toEqual([one.hash, other.hash].toSorted())
      await store.delete(one.hash)
      await store.delete(one.hash)
      expect((await store.usage()).usedBytes).toBe(50)
      expect(await store.has(one.hash)).toBe(false)
      expect(await store.has(other.hash)).toBe(true)
    })

    if (reopen !== null) {
      it('keeps pieces over a restart', async () => {
        const store = await make()
        const { hash, bytes } = await piece(8)
        await store.write(hash, bytes)
        const again = await reopen(store)
        expect(await again.read(hash)).toEqual(bytes)
        expect((await again.usage()).persistent).toBe(true)
      })
    }

    if (corrupt !== null) {
      it('deletes a damaged piece instead of giving it out', async () => {
        const store = await make()
        const [one, other] = [await piece(9), await piece(10)]
        await store.write(one.hash, one.bytes)
        await store.write(other.hash, other.bytes)
        await corrupt(store, one.hash)
        expect(await store.read(one.hash)).toBeNull()
        expect(await store.has(one.hash)).toBe(false)
        expect(await store.read(other.hash)).toEqual(other.bytes)
        await store.write(one.hash, one.bytes)
        expect(await store.read(one.hash)).toEqual(one.bytes)
      })
    }
  })
}
