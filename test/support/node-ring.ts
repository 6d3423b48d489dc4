import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { PeerId } from '../../sdk/core/ids.ts'
import { parseManifest } from '../../sdk/core/model/parse-manifest.ts'
import { createConnector } from '../../sdk/net/connector.ts'
import { createSignaling } from '../../sdk/net/signaling-client.ts'
import { createSystemTimers } from '../../sdk/net/timers.ts'
import { createNodeStageRunner } from '../../sdk/runtime/ort.node.ts'
import { fetchPieces, pieceSource } from '../../sdk/storage/download.ts'
import { createMemoryShardStore } from '../../sdk/storage/memory-shard-store.ts'
import { createDeferred } from '../../sdk/worker/deferred.ts'
import { createWorker } from '../../sdk/worker/worker.ts'
import type { Worker } from '../../sdk/worker/worker-snapshot.ts'
import { parseConfig, type Flags } from '../../signaling/config.ts'
import { createHost, type Host, type StartedHost } from '../../signaling/server.ts'
import { hostDeps } from '../../signaling/start-command.ts'
import { openAsker, type Asker } from './asker.ts'
import { createLetterTokenizer } from './letter-tokenizer.ts'
import { eventually } from './eventually.ts'

/** A real host and real workers in this process, on ONNX Runtime's CPU provider; frames go through the host's relay. */
export type NodeRing = {
  readonly host: Host
  readonly started: StartedHost
  /** `http://127.0.0.1:port` */
  readonly origin: string
  readonly dataDir: string
  readonly workers: Worker[]
  addWorker(): Promise<Worker>
  /** Waits until every block has a ready worker and the stages are linked. */
  complete(): Promise<void>
  /** No worker begins a step until the function that is returned is called. */
  hold(): () => void
  /** Another host on the same port and data, as after a crash or an update; knows nothing of the first one's answers. */
  restartHost(): Promise<void>
  close(): Promise<void>
}

const COMPLETE_MS = 60_000
const PLEDGE_BYTES = 512 * 1024 * 1024

export async function startNodeRing(workers: number, flags: Flags = {}): Promise<NodeRing> {
  const dataDir = await mkdtemp(join(tmpdir(), 'crowdinfer-node-ring-'))
  const makeHost = (port: string): Host =>
    createHost(
      parseConfig({
        port,
        host: '127.0.0.1',
        data: dataDir,
        model: 'crowdtalk-0.3m',
        stages: String(Math.max(workers, 1)),
        ...flags,
      }),
      hostDeps(() => undefined),
    )
  let host = makeHost('0')
  const started = await host.start()
  const origin = `http://127.0.0.1:${started.port}`
  let gate: Promise<void> = Promise.resolve()
  const ring: NodeRing = {
    get host() {
      return host
    },
    started,
    origin,
    dataDir,
    workers: [],
    async addWorker() {
      const worker = openWorker(origin, started.secret ?? '', {
        name: `worker-${ring.workers.length + 1}`,
        gate: () => gate,
      })
      ring.workers.push(worker)
      await worker.start()
      return worker
    },
    async complete() {
      await eventually('a complete ring', COMPLETE_MS, () => host.service().snapshot().complete)
    },
    hold() {
      const held = createDeferred<undefined>()
      gate = held.promise
      return () => held.resolve(undefined)
    },
    async restartHost() {
      await host.close()
      host = makeHost(String(started.port))
      await host.start()
    },
    async close() {
      await Promise.all(ring.workers.map((worker) => worker.leave()))
      await host.close()
      await rm(dataDir, { recursive: true, force: true })
    },
  }
  for (let index = 0; index < workers; index += 1) await ring.addWorker()
  if (workers > 0) await ring.complete()
  return ring
}

/** `gate`: what each step waits for before it begins. */
function openWorker(
  url: string,
  secret: string,
  { name, gate }: { readonly name: string; readonly gate: () => Promise<void> },
): Worker {
  const timers = createSystemTimers()
  const store = createMemoryShardStore()
  const signaling = createSignaling({
    url,
    // A name that a test chooses is an id without a parser.
    identity: { role: 'worker', peer: name as PeerId, token: `token-${name}`, name, secret },
    timers,
  })
  const runner = createNodeStageRunner({ threads: 1 })
  let pieces = ''
  return createWorker(
    {
      signaling,
      connector: createConnector({ signaling, makePeerLink: null, timers }),
      runner: { ...runner, run: (step) => gate().then(() => runner.run(step)) },
      store,
      async fetchPieces(wanted, { signal, onProgress }) {
        await fetchPieces({
          pieces: wanted,
          store,
          sources: [pieceSource('host', pieces)],
          fetch: globalThis.fetch,
          signal,
          onProgress: (done) => onProgress(done.storedBytes, done.fetchedBytes, 0),
        })
      },
      async loadManifest(path) {
        const address = new URL(path, url)
        pieces = new URL('pieces/', address).href
        return parseManifest(await (await fetch(address)).json())
      },
      now: () => performance.now(),
      later: (ms, task) => timers.after(ms, task),
    },
    { pledgeBytes: PLEDGE_BYTES, paused: false },
  )
}

/** An asker of such a ring, for token ids alone. */
export async function openRingAsker({ origin, started, host }: NodeRing): Promise<Asker> {
  const { model } = host.service().state()
  const manifest = await fetch(`${origin}/models/${model.id}/manifest.json`)
  return await openAsker({
    url: origin,
    secret: started.secret ?? null,
    manifest: parseManifest(await manifest.json()),
    tokenizer: createLetterTokenizer(),
  })
}
