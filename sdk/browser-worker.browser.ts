import { createComputeThread } from './compute-thread.browser.ts'
import { tabIdentity } from './identity.browser.ts'
import { createModelSource } from './model-source.ts'
import { createConnector } from './net/connector.ts'
import { createSignaling } from './net/signaling-client.ts'
import { createBrowserPeerLinks } from './net/simple-peer.browser.ts'
import { createSystemTimers } from './net/timers.ts'
import { openShardStore } from './storage/idb-shard-store.browser.ts'
import { createWorker } from './worker/worker.ts'
import type { Worker } from './worker/worker-snapshot.ts'

export type BrowserWorkerOptions = {
  secret: string
  name: string
  pledgeBytes: number
  /** Begin paused, as the tab was left. */
  paused?: boolean
  prefer?: 'auto' | 'webgpu' | 'wasm'
  url?: string
  /** Pieces are kept in memory only, and why, in words for people. */
  onStorageFallback?: (reason: string) => void
}

/** The worker role with this browser's adapters. Nothing happens until its start(). */
export async function createBrowserWorker(options: BrowserWorkerOptions): Promise<Worker> {
  const url = options.url ?? location.origin
  const timers = createSystemTimers()
  const identity = await tabIdentity('worker')
  const { onStorageFallback } = options
  const store = await openShardStore(
    onStorageFallback === undefined ? {} : { onFallback: onStorageFallback },
  )
  const source = createModelSource(url)
  const signaling = createSignaling({
    url,
    identity: { role: 'worker', ...identity, name: options.name, secret: options.secret },
    timers,
  })
  const thread = createComputeThread({ prefer: options.prefer ?? 'auto' })
  return createWorker(
    {
      signaling,
      connector: createConnector({
        signaling,
        makePeerLink: createBrowserPeerLinks(thread.lanes),
        timers,
      }),
      runner: thread.runner,
      makeSessions: thread.makeSessions,
      store,
      fetchPieces: (pieces, options) =>
        // A part of what is held must not push out the rest of it.
        source.fetchInto(store, { pieces, ...options, mayEvict: options.complete === true }),
      loadManifest: (path) => source.manifest(path),
      now: () => performance.now(),
      wallNow: () => Date.now(),
      later: (ms, task) => timers.after(ms, task),
    },
    { pledgeBytes: options.pledgeBytes, paused: options.paused ?? false },
  )
}
