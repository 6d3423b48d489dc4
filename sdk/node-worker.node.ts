import { join } from 'node:path'
import { claimIdentity } from './identity.node.ts'
import { createModelSource } from './model-source.ts'
import { createConnector } from './net/connector.ts'
import type { SignalingState } from './net/signaling.ts'
import { createSignaling } from './net/signaling-client.ts'
import { NODE_CREDIT_BYTES, openNodePeerLinks } from './net/simple-peer.node.ts'
import { createSystemTimers } from './net/timers.ts'
import type { NodeOrtOptions } from './runtime/ort.node.ts'
import { createNodeThreadRunner } from './runtime/thread/proxy.node.ts'
import { openFsShardStore } from './storage/fs-shard-store.node.ts'
import { createWorker } from './worker/worker.ts'
import type { Worker } from './worker/worker-snapshot.ts'

export type { NodeOrtOptions } from './runtime/ort.node.ts'

export type NodeDeviceOptions = {
  readonly dataDir: string
  /** For people: what is unusual on this machine. */
  readonly log: (line: string) => void
}

export type JoinOptions = {
  /** The host's origin. */
  readonly url: string
  readonly secret: string
  readonly name: string
  readonly pledgeBytes: number
  readonly ort: NodeOrtOptions
  readonly onHost: (state: SignalingState) => void
}

/** What of a Node worker outlives a connection to a host: pieces, identity, the WebRTC library. */
export type NodeDevice = {
  /** The worker role with this machine's adapters. Nothing happens until its start(). One at a time. */
  join(options: JoinOptions): Worker
  /** After the worker left. Says whether its compute threads ended in time: one that hangs is not waited for. Idempotent. */
  close(): Promise<{ readonly threadsEnded: boolean }>
}

/** A thread that was told to end gets this long; native code can keep it for ever. */
const THREAD_END_MS = 3_000

/** @throws CrowdError storage-failed */
export async function openNodeDevice(options: NodeDeviceOptions): Promise<NodeDevice> {
  const store = await openFsShardStore(join(options.dataDir, 'shards'))
  const { release, ...identity } = await claimIdentity(join(options.dataDir, 'workers'))
  const links = await openNodePeerLinks({ log: options.log })
  const timers = createSystemTimers()
  const threads = new Set<Promise<void>>()
  /** Which links are open is told by the worker itself. */
  const logFailure = (line: string): void => {
    if (line.includes(' failed: ')) options.log(line)
  }

  return {
    join({ url, secret, name, pledgeBytes, ort, onHost }) {
      const source = createModelSource(url)
      const signaling = createSignaling({
        url,
        identity: { role: 'worker', ...identity, name, secret },
        timers,
      })
      signaling.onState(onHost)
      return createWorker(
        {
          signaling,
          connector: createConnector(
            { signaling, makePeerLink: links.makePeerLink, timers, log: logFailure },
            { creditBytes: NODE_CREDIT_BYTES },
          ),
          runner: createNodeThreadRunner(ort, {
            onKilled: ({ message }) => options.log(`the compute thread was lost: ${message}`),
            onThread(ended) {
              threads.add(ended)
              void ended.then(() => threads.delete(ended))
            },
          }),
          store,
          // Several workers share the folder: none of them makes room in it.
          fetchPieces: (pieces, options) => source.fetchInto(store, { pieces, ...options }),
          loadManifest: (path) => source.manifest(path),
          now: timers.now,
          wallNow: () => Date.now(),
          later: timers.after,
        },
        { pledgeBytes, paused: false },
      )
    },
    async close() {
      links.close()
      await release()
      const limit = new Promise<void>((resolve) => timers.after(THREAD_END_MS, resolve))
      await Promise.race([Promise.all(threads), limit])
      return { threadsEnded: threads.size === 0 }
    },
  }
}
