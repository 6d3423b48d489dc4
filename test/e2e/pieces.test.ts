import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import type { SwarmSnapshot } from '../../sdk/protocol/swarm-snapshot.ts'
import { eventually } from '../support/chromium.ts'
import { startHostProcess, type HostProcess } from '../support/host-process.ts'
import { startRing, type Ring } from '../support/ring.ts'
import { startWorkerProcess, type WorkerProcess } from '../support/worker-process.ts'

const SMALL = 'crowdtalk-0.3m'

let folder = ''
let host: HostProcess | null = null
let ring: Ring | null = null
const workers: WorkerProcess[] = []

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'crowdinfer-pieces-'))
})

afterEach(async () => {
  await Promise.all(workers.splice(0).map((worker) => worker.kill()))
  await host?.kill()
  await ring?.close()
  host = null
  ring = null
  await rm(folder, { recursive: true, force: true })
})

type Peer = SwarmSnapshot['peers'][number]

function readyPeer(swarm: SwarmSnapshot, name: string): Peer | null {
  return swarm.peers.find((peer) => peer.name === name && peer.state === 'ready') ?? null
}

test('a worker that joins fetches everything from one that has it: the host gives no byte', async () => {
  const one = await startHostProcess({ dataDir: folder, model: SMALL, stages: 1 })
  host = one
  const joinAs = (name: string): WorkerProcess => {
    const worker = startWorkerProcess({ joinUrl: one.joinUrl, name, dataDir: join(folder, name) })
    workers.push(worker)
    return worker
  }
  const first = await joinAs('first').event('serving')
  expect(first).toMatchObject({ fetchedBytes: first.totalBytes, peerBytes: 0 })
  const fromHost = one.pieceRequests()
  expect(fromHost.length).toBeGreaterThan(0)

  const second = await joinAs('second').event('serving')
  expect(second).toMatchObject({ fetchedBytes: first.totalBytes, peerBytes: first.totalBytes })
  expect(one.pieceRequests()).toEqual(fromHost)
  const seen = await eventually('both in the swarm', 10_000, async () =>
    readyPeer(await one.swarm(), 'second'),
  )
  expect(seen.peerBytes).toBe(first.totalBytes)
  const metrics = await (await fetch(`${one.origin}/metrics`)).text()
  expect(metrics).toContain(`crowdinfer_piece_bytes_total{source="host"} ${first.totalBytes}`)
  expect(metrics).toContain(`crowdinfer_piece_bytes_total{source="peers"} ${first.totalBytes}`)
})

test('a tab fetches from a worker, and a tab from that tab', async () => {
  const mixed = await startRing({ model: SMALL, tabs: 0, workers: 1, stages: 1, provider: 'wasm' })
  ring = mixed
  const [worker] = mixed.workers
  const served = await worker?.event('serving')
  const one = await mixed.openTab({ name: 'one' })
  const first = await eventually('the first tab', 30_000, () => readyPeer(mixed.swarm(), 'one'))
  expect(one.pieces).toEqual({ requests: 0, bytes: 0 })
  expect(first).toMatchObject({ fetchedBytes: first.totalBytes, peerBytes: served?.totalBytes })

  worker?.process.kill('SIGTERM')
  await eventually('the worker to be gone', 20_000, () =>
    mixed.swarm().peers.every(({ name }) => name !== worker?.name),
  )
  const two = await mixed.openTab({ name: 'two' })
  const second = await eventually('the second tab', 30_000, () => readyPeer(mixed.swarm(), 'two'))
  expect(two.pieces).toEqual({ requests: 0, bytes: 0 })
  expect(second).toMatchObject({ fetchedBytes: second.totalBytes, peerBytes: first.totalBytes })
})
