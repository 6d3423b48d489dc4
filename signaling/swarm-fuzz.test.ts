import * as v from 'valibot'
import { expect, test } from 'vitest'
import type { PairId, RequestId } from '../sdk/core/ids.ts'
import { CrowdError } from '../sdk/core/errors.ts'
import { PIECE_READERS, PIECE_SOURCES, REJOIN_MS, RETURN_MS } from '../sdk/core/limits.ts'
import { blockPieces } from '../sdk/core/model/manifest.ts'
import { lengthOf } from '../sdk/core/session/token-list.ts'
import { createStageSizes } from '../sdk/core/plan/memory.ts'
import type { ClientMessage, ClientMessageOf } from '../sdk/protocol/client-to-server.ts'
import type { SwarmState } from '../sdk/core/swarm/state.ts'
import { swarmSnapshot } from '../sdk/protocol/swarm-snapshot.ts'
import { fakeSwarm, pledgeOf, type FakePeer, type FakeSwarm } from '../test/support/fake-swarm.ts'
import { modelOf, seededRandom } from '../test/support/host-fixtures.ts'

const model = modelOf()
const sizes = createStageSizes(model)
const PIECES = model.blocks.flatMap(blockPieces).map(({ sha256 }) => sha256)

type World = {
  readonly swarm: FakeSwarm
  readonly random: () => number
  readonly workers: FakePeer[]
  readonly askers: FakePeer[]
  asked: number
}

const STEPS: readonly ((world: World) => void)[] = [
  (world) => {
    const name = `w${Math.floor(world.random() * 8)}`
    const old = world.workers.findIndex((worker) => worker.peer === name)
    if (old >= 0) world.workers.splice(old, 1)
    world.workers.push(world.swarm.worker(name, Math.floor(world.random() * 90_000)))
  },
  (world) => sharer(world),
  (world) => stage(world),
  (world) => pick(world, world.workers)?.handle.closed(),
  (world) => say(pick(world, world.workers), { kind: 'leave' }),
  (world) => say(pick(world, world.workers), pledgeOf(pledge(world), world.random() < 0.3)),
  (world) => {
    const asker = world.swarm.join(`a${Math.floor(world.random() * 3)}`, 'asker')
    world.askers.push(asker)
  },
  (world) => pick(world, world.askers)?.handle.closed(),
  (world) => ask(world),
  (world) => ask(world),
  (world) => {
    const request = `r${Math.floor(world.random() * (world.asked + 1))}` as RequestId
    say(pick(world, world.askers), { kind: 'cancel', request })
  },
  (world) => token(world),
  (world) => token(world),
  (world) => token(world),
  (world) => {
    const worker = pick(world, world.workers)
    const attempt = 1 + Math.floor(world.random() * 3)
    const pair = `pair-t-${Math.floor(world.random() * 9)}` as PairId
    const state = world.random() < 0.5 ? 'open' : 'closed'
    say(worker, { kind: 'link-state', pair, attempt, state, path: 'relay', rttMs: 5 })
  },
  (world) => world.swarm.pass(Math.floor(world.random() * 3_000)),
]

function pick<T>(world: World, list: readonly T[]): T | undefined {
  return list[Math.floor(world.random() * list.length)]
}

/** One that shares pieces, has some, and fetches until `stage` says otherwise. */
function sharer(world: World): void {
  const name = `s${Math.floor(world.random() * 6)}`
  const old = world.workers.findIndex((worker) => worker.peer === name)
  if (old >= 0) world.workers.splice(old, 1)
  const worker = world.swarm.sharer(name)
  world.workers.push(worker)
  const cached = PIECES.filter(() => world.random() < 0.5)
  say(worker, { ...(pledgeOf(90_000) as ClientMessageOf<'pledge'>), cached })
}

function stage(world: World): void {
  const worker = pick(world, world.workers)
  const assignment = worker?.all('assign').at(-1)?.assignment
  const state = pick(world, ['fetching', 'loading', 'ready', 'failed'] as const)
  if (assignment === undefined || state === undefined) return
  const bytes = { doneBytes: 1, totalBytes: 2, fetchedBytes: 1, peerBytes: 1 }
  say(worker, { kind: 'stage-state', assignment, state, ...bytes })
}

function pledge(world: World): number {
  return world.random() < 0.2 ? 0 : Math.floor(world.random() * 90_000)
}

/** Rules broken on purpose are refused with a CrowdError; anything else is a fault of the host. */
function say(peer: FakePeer | undefined, message: ClientMessage): void {
  try {
    peer?.say(message)
  } catch (thrown) {
    if (!(thrown instanceof CrowdError) || thrown.code === 'internal') throw thrown
  }
}

function ask(world: World): void {
  const asker = pick(world, world.askers)
  const over = world.random() < 0.3 ? { answered: [1] } : {}
  if (asker) world.swarm.ask(asker, `r${world.asked++}`, over)
}

function token(world: World): void {
  const active = world.swarm.service.state().requests.values()
  const running = [...active].filter((request) => request.phase === 'running')
  const request = pick(world, running)
  if (!request || request.session === null) return
  const worker = world.workers.find((one) => one.peer === request.stages.at(-1)?.peer)
  const head = { session: request.session, epoch: request.epoch }
  const position = request.promptLength + lengthOf(request.answer)
  // Now and then the model's end token, and an end that comes too early.
  const isStop = world.random() < 0.2
  const sampled = { token: isStop ? 2 : 1, logprob: 0, top: [] }
  if (world.random() < 0.95) say(worker, { kind: 'session-token', ...head, position, sampled })
  const isFull = lengthOf(request.answer) + 1 === request.maxTokens
  if (isStop || isFull)
    say(worker, { kind: 'session-end', ...head, reason: isStop ? 'stop' : 'length' })
}

function checkPieceLinks(state: SwarmState, where: string): void {
  const links = [...state.pairs.values()].filter((pair) => pair.purpose === 'pieces')
  const live = links.filter((pair) => pair.state !== 'closed')
  for (const peer of state.peers.keys()) {
    expect(live.filter((pair) => pair.to === peer).length, where).toBeLessThanOrEqual(PIECE_READERS)
    const own = live.filter((pair) => pair.from === peer).length
    expect(own, where).toBeLessThanOrEqual(PIECE_SOURCES)
  }
  for (const { from, to } of links) {
    expect(['ordered', 'fetching'], where).toContain(state.peers.get(from)?.assignment?.state)
    expect(from, where).not.toBe(to)
  }
}

function check(world: World, where: string): void {
  const state = world.swarm.service.state()
  const result = v.safeParse(swarmSnapshot, world.swarm.service.snapshot())
  expect(result.success ? [] : result.issues.map((issue) => issue.message), where).toEqual([])
  for (const peer of state.peers.values()) {
    const range = peer.assignment?.range
    const isPaused = peer.pledge?.memoryBytes === 0
    const busy = [...state.requests.values()].some(
      ({ phase, stages, leaving }) =>
        (['opening', 'running'].includes(phase) || (phase === 'repairing' && isPaused)) &&
        [...stages, ...leaving].some((stage) => stage.peer === peer.peer),
    )
    // A lowered pledge counts once the answers that run are done; a lost device is told when it is back.
    if (!range || !peer.pledge || busy || peer.droppedAt !== null) continue
    expect(sizes.bytes('wasm', range), where).toBeLessThanOrEqual(peer.pledge.memoryBytes)
  }
  checkPieceLinks(state, where)
  for (const pair of state.pairs.values())
    for (const end of [pair.from, pair.to]) expect(state.peers.has(end), where).toBe(true)
}

test('25 random lives of a swarm: no fault, no pledge exceeded, everything asked is ended', () => {
  for (let seed = 1; seed <= 25; seed++) {
    const random = seededRandom(seed)
    const swarm = fakeSwarm(model, 1 + Math.floor(random() * 3))
    const world: World = { swarm, random, workers: [], askers: [], asked: 0 }
    for (let step = 0; step < 100; step++) {
      pick(world, STEPS)?.(world)
      check(world, `seed ${seed}, step ${step}`)
    }
    for (const worker of world.workers) worker.handle.closed()
    swarm.pass(REJOIN_MS + RETURN_MS)
    const open = [...swarm.service.state().requests.values()].filter((one) => one.reason === null)
    expect(open, `seed ${seed}`).toEqual([])
    expect(swarm.service.state().pairs.size, `seed ${seed}`).toBe(0)
    for (const asker of world.askers) {
      const ended = asker.all('ask-end').map((end) => end.request)
      expect(new Set(ended).size, `seed ${seed}, ${asker.peer}`).toBe(ended.length)
    }
  }
})
