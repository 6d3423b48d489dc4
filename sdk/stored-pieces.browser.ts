import { openShardStore } from './storage/idb-shard-store.browser.ts'

/** Deletes every piece that this browser keeps for this host. @throws CrowdError storage-failed */
export async function deleteStoredPieces(): Promise<void> {
  const store = await openShardStore()
  for (const hash of await store.list()) await store.delete(hash)
}
