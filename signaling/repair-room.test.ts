import { expect, test } from 'vitest'
import { REPAIR_MS } from '../sdk/core/limits.ts'
import { createStageSizes } from '../sdk/core/plan/memory.ts'
import type { RequestState } from '../sdk/core/swarm/request-state.ts'
import { at, endAnswer, fakeSwarm, type FakePeer } from '../test/support/fake-swarm.ts'
import { modelOf } from '../test/support/host-fixtures.ts'

const model = modelOf({ contextLength: 512 })
const PROMPT = Array.from({ length: 20 }, (_, index) => 5 + index)
/** Tokens of an answer that may grow to a whole context, and of one that takes half of it. */
const [LARGE, SMALL] = [400, 10]

/** Two holders of each half with room for two whole contexts; four answers, each over another pair of them. */
function fullRing(maxTokens: readonly number[]) {
  const half = model.blocks.length / 2
  const sizes = createStageSizes(model)
  const bytes = Math.max(
    sizes.bytes('wasm', { start: 0, end: half }),
    sizes.bytes('wasm', { start: half, end: model.blocks.length }),
  )
  const swarm = fakeSwarm(model, 2)
  const workers = ['w0', 'w1', 'w2', 'w3'].map((name) => swarm.worker(name, bytes))
  const asker = swarm.join('asker', 'asker')
  swarm.pass(1_000)
  for (const [index, tokens] of maxTokens.entries()) {
    const prompt = PROMPT.map((token) => token + index)
    swarm.ask(asker, `r${index}`, { prompt, maxTokens: tokens })
    swarm.pass(100)
  }
  const request = (name: string): RequestState => {
    const found = swarm.service.state().requests.get(`asker/${name}`)
    if (found === undefined) throw new Error(`no ${name}`)
    return found
  }
  const phase = (name: string): string => request(name).phase
  /** The device that computes one half of an answer. */
  const holder = (name: string, stage: number): FakePeer => {
    const peer = request(name).stages[stage]?.peer
    const found = workers.find((worker) => worker.peer === peer)
    if (found === undefined) throw new Error(`nobody for ${name}`)
    return found
  }
  const finish = (name: string): void => {
    const { session, epoch } = request(name)
    if (session === null) throw new Error(`${name} has no session`)
    endAnswer(holder(name, 1), { session, epoch }, PROMPT.length)
    swarm.pass(100)
  }
  return { swarm, workers, asker, request, phase, holder, finish }
}

test('RE13 an answer whose only holder is full waits in repair, before whoever asks later, and ends with that reason', () => {
  const { swarm, asker, phase, holder, finish, request } = fullRing([LARGE, LARGE, LARGE, SMALL])
  const left = holder('r3', 1)
  const lost = ['r0', 'r1', 'r2'].filter((name) => holder(name, 1) !== left)
  const [first, second] = [at(lost, 0), at(lost, 1)]
  const stays = ['r0', 'r1', 'r2'].find((name) => !lost.includes(name)) ?? ''
  holder(first, 1).say({ kind: 'leave' })
  swarm.pass(200)
  // Small enough for what is left there.
  const other = swarm.join('other', 'asker')
  swarm.ask(other, 'late', { prompt: PROMPT.toReversed(), maxTokens: SMALL })
  swarm.pass(5_000)
  expect([phase(first), phase(second)]).toEqual(['repairing', 'repairing'])
  expect([phase(stays), phase('r3')]).toEqual(['running', 'running'])
  expect(other.all('ask-accepted')).toEqual([])
  finish(stays)
  expect(phase(first)).toBe('running')
  expect(request(first).stages[1]?.peer).toBe(left.peer)
  expect(phase(second)).toBe('repairing')
  expect(other.all('ask-accepted')).toEqual([])
  swarm.pass(REPAIR_MS)
  const end = asker.all('ask-end').find((one) => one.request === second)
  expect(end?.error?.code).toBe('too-many-requests')
  expect(end?.error?.message).toMatch(/had no room beside other answers for 60 s/)
  expect(end?.error?.message).not.toMatch(/nobody took over/)
  expect(other.all('ask-accepted')).toHaveLength(1)
  // Nobody was to blame.
  for (const { strikes } of swarm.service.state().peers.values()) expect(strikes).toBe(0)
})

test('RE13 answers that wait for each other’s room take turns: one that broke later frees what it holds', () => {
  const names = ['r0', 'r1', 'r2', 'r3']
  const { swarm, phase, holder, finish, request } = fullRing(names.map(() => LARGE))
  const isFirst = (name: string): boolean => holder(name, 0) === holder('r0', 0)
  const one = names.filter(isFirst)
  const other = names.filter((name) => !isFirst(name))
  expect([one.length, other.length]).toEqual([2, 2])
  // What is left holds one half of each: without a turn they would wait for each other until the end.
  const [a, b] = [holder(at(one, 0), 0), holder(at(other, 0), 1)]
  const sessions = names.map((name) => request(name).session)
  holder(at(one, 0), 1).say({ kind: 'leave' })
  swarm.pass(100)
  holder(at(other, 0), 0).say({ kind: 'leave' })
  swarm.pass(100)
  const running = names.filter((name) => phase(name) === 'running')
  expect(running.map((name) => one.includes(name))).toEqual([true, true])
  for (const name of running)
    expect(request(name).stages.map(({ peer }) => peer)).toEqual([a.peer, b.peer])
  // Those of the others were freed before the order for what takes their place.
  const closed = b.all('session-close').map(({ session, retain }) => [session, retain])
  expect(closed).toEqual(other.toReversed().map((name) => [sessions[names.indexOf(name)], false]))
  const last = (kind: string): number => b.inbox.findLastIndex((message) => message.kind === kind)
  expect(last('session-close')).toBeLessThan(last('session-open'))
  for (const name of running) finish(name)
  expect(other.map(phase)).toEqual(['running', 'running'])
  for (const name of other) expect(request(name).epoch).toBe(2)
})

test('RE13 a kept session gives way to an answer in repair', () => {
  const { swarm, phase, holder, finish } = fullRing([LARGE, LARGE, LARGE, LARGE])
  const lost = holder('r0', 1)
  const stays = ['r1', 'r2', 'r3'].filter((name) => holder(name, 1) !== lost)
  for (const name of stays) finish(name)
  expect(swarm.service.state().retained.size).toBe(2)
  lost.say({ kind: 'leave' })
  swarm.pass(200)
  expect(phase('r0')).toBe('running')
  expect(swarm.service.state().retained.size).toBe(0)
})
