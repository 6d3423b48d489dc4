/** What pages use. Which adapter stands behind which port is decided in the files that this one names. */
export { createBrowserWorker, type BrowserWorkerOptions } from './browser-worker.browser.ts'
export {
  openSwarm,
  type ServedModel,
  type SwarmConnection,
  type SwarmOptions,
} from './swarm-connection.browser.ts'
export { deleteStoredPieces } from './stored-pieces.browser.ts'
export { requestPersistence } from './storage/idb-shard-store.browser.ts'
