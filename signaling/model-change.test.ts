import { describe, expect, test } from 'vitest'
import type { ModelId } from '../sdk/core/ids.ts'
import { MODEL_DRAIN_MS, PLEDGE_MS } from '../sdk/core/limits.ts'
import { whyTooLarge } from '../sdk/core/swarm/decide-model.ts'
import type { Manifest } from '../sdk/core/model/manifest.ts'
import {
  at,
  endAnswer,
  fakeRing,
  fakeSwarm,
  pledgeOf,
  type FakePeer,
} from '../test/support/fake-swarm.ts'
import { hashOf, modelOf } from '../test/support/host-fixtures.ts'

const model = modelOf()
/** Four layers whose pieces are others than those of `model`. */
const other: Manifest = {
  ...modelOf({ layers: 4, contextLength: 32 }),
  id: 'other-model' as ModelId,
  revision: 'r2',
  blocks: modelOf({ layers: 4 }).blocks.map((block, index) => ({
    ...block,
    data: [{ sha256: hashOf(100 + index), bytes: block.dataBytes }],
  })),
}
const served = { model: other, minStages: 2 }

type Swarm = ReturnType<typeof fakeSwarm>

function choose(swarm: Swarm, name = 'other', next = served): void {
  swarm.model({ kind: 'model-wanted', name, step: 'cutting' })
  swarm.model({ kind: 'model-chosen', name, served: next })
}

/** The answer of the newest session, from its last stage: so many tokens and the end token. */
function answer(workers: readonly FakePeer[], count: number, promptLength = 3): void {
  const { session, epoch } = at(workers, 0).last('session-open')
  const last = at(workers, workers.length - 1)
  for (let index = 0; index < count; index += 1)
    last.say({
      kind: 'session-token',
      session,
      epoch,
      position: promptLength + index,
      sampled: { token: 9, logprob: -1, top: [] },
    })
  endAnswer(last, { session, epoch }, promptLength + count)
}

const endOf = (asker: FakePeer, request: string) =>
  asker.all('ask-end').find((end) => end.request === request)

describe('a change of the model', () => {
  test('MO1 MO3 everybody is told, devices pledge anew, and the ring answers with the new model', () => {
    const { swarm, workers, asker } = fakeRing(model, 2)
    const watcher = swarm.join('watcher', 'watcher')
    choose(swarm)
    for (const peer of [...workers, asker, watcher])
      expect(peer.all('model')).toEqual([
        {
          kind: 'model',
          model: 'other-model',
          revision: 'r2',
          manifestPath: '/models/other-model/manifest.json',
        },
      ])
    for (const worker of workers)
      expect(worker.last('assign')).toMatchObject({ model: 'other-model', revision: 'r2' })
    expect(workers.map((worker) => worker.last('assign').range)).toEqual([
      { start: 0, end: 3 },
      { start: 3, end: 6 },
    ])
    const snapshot = swarm.service.snapshot()
    expect(snapshot).toMatchObject({ complete: true, change: null })
    expect(snapshot.model).toMatchObject({ id: 'other-model', layerCount: 4, contextLength: 32 })
    swarm.ask(asker, 'r1', { model: other.id, revision: 'r2', maxTokens: 2 })
    answer(workers, 1)
    expect(endOf(asker, 'r1')?.reason).toBe('stop')
    expect(swarm.join('late', 'asker').last('welcome')).toMatchObject({
      model: 'other-model',
      revision: 'r2',
    })
  })

  test('MO5 an answer that runs ends as itself before anything is dropped', () => {
    const { swarm, workers, asker } = fakeRing(model, 2)
    swarm.ask(asker, 'r1')
    choose(swarm)
    swarm.pass(MODEL_DRAIN_MS - 1_000)
    expect(asker.all('model')).toEqual([])
    expect(swarm.service.snapshot().change).toEqual({ name: 'other', phase: 'draining', step: '' })
    answer(workers, 2)
    swarm.pass(100)
    expect(asker.all('ask-token')).toHaveLength(3)
    expect(endOf(asker, 'r1')).toMatchObject({ reason: 'stop' })
    // In this order: what comes after the message is of the new model.
    const kinds = asker.inbox.map(({ kind }) => kind)
    expect(kinds.lastIndexOf('ask-end')).toBeLessThan(kinds.indexOf('model'))
    expect(swarm.service.snapshot()).toMatchObject({ complete: true, change: null })
  })

  test('MO5 an answer that does not end in time is ended with the reason, and its caches are freed', () => {
    const { swarm, workers, asker } = fakeRing(model, 2)
    swarm.ask(asker, 'r1')
    choose(swarm)
    swarm.pass(MODEL_DRAIN_MS + 200)
    expect(endOf(asker, 'r1')?.error).toEqual({
      code: 'model-changed',
      message: 'the host goes on with another model: other-model',
    })
    for (const worker of workers) expect(worker.all('session-close')).toHaveLength(1)
    expect(swarm.service.snapshot()).toMatchObject({ complete: true, change: null })
    // What the last stage still sends of it means nothing.
    answer(workers, 1)
    expect(asker.all('ask-token')).toEqual([])
  })

  test('MO5 questions that wait, and those that come meanwhile, are refused for now', () => {
    const { swarm, asker } = fakeRing(model, 2)
    const askers = Array.from({ length: 5 }, (_, index) => swarm.join(`a${index}`, 'asker'))
    for (const one of askers) swarm.ask(one, 'r')
    choose(swarm)
    swarm.ask(asker, 'late')
    expect(endOf(asker, 'late')?.error?.code).toBe('model-changed')
    // Four run at once; the fifth waited.
    expect(askers.map((one) => endOf(one, 'r')?.error?.code)).toEqual([
      ...Array<undefined>(4).fill(undefined),
      'model-changed',
    ])
  })

  test('MO2 a pledge for another model gives no right to orders of this one', () => {
    const swarm = fakeSwarm(model, 2)
    swarm.worker('a')
    const slow = swarm.worker('b', 1e9, ['model'])
    choose(swarm)
    const before = slow.all('assign').length
    slow.say(pledgeOf(1e9, false, 'r1'))
    swarm.pass(200)
    expect(slow.all('assign')).toHaveLength(before)
    slow.say(pledgeOf(1e9, false, 'r2'))
    expect(slow.all('assign')).toHaveLength(before + 1)
  })

  test('MO2 nobody is given layers before all told what they have stored of the new model', () => {
    const swarm = fakeSwarm(model, 2)
    const [a, b] = [swarm.worker('a', 1e9, ['model']), swarm.worker('b', 1e9, ['model'])]
    choose(swarm)
    const pledge = (blocks: readonly number[]) => ({
      ...pledgeOf(1e9, false, 'r2'),
      cached: blocks.flatMap((block) => other.blocks[block]?.data.map((piece) => piece.sha256)),
    })
    a.say(pledge([3, 4, 5]) as never)
    swarm.pass(PLEDGE_MS / 2)
    expect(a.last('assign').revision).toBe('r1')
    b.say(pledge([0, 1, 2]) as never)
    swarm.pass(100)
    expect([a.last('assign').range, b.last('assign').range]).toEqual([
      { start: 3, end: 6 },
      { start: 0, end: 3 },
    ])
  })

  test('MO2 a device that says nothing holds up the others for a while only', () => {
    const swarm = fakeSwarm(model, 2)
    const a = swarm.worker('a')
    const c = swarm.worker('c')
    swarm.worker('b', 1e9, ['model'])
    choose(swarm)
    swarm.pass(PLEDGE_MS - 1_000)
    expect(swarm.service.snapshot()).toMatchObject({
      complete: false,
      change: { phase: 'loading' },
    })
    swarm.pass(2_000)
    expect([a, c].map((worker) => worker.last('assign').revision)).toEqual(['r2', 'r2'])
    expect(swarm.service.snapshot()).toMatchObject({ complete: true, change: null })
  })

  test('the last wish counts; one that came to nothing leaves the served model and says why', () => {
    const { swarm, workers } = fakeRing(model, 2)
    const assigns = () => workers.map((worker) => worker.all('assign').length)
    const before = assigns()
    swarm.model({ kind: 'model-wanted', name: 'first', step: 'cutting' })
    swarm.model({ kind: 'model-wanted', name: 'second', step: 'cutting' })
    swarm.model({ kind: 'model-chosen', name: 'first', served })
    const error = { code: 'model-invalid', message: 'a piece is missing' } as const
    swarm.model({ kind: 'model-refused', name: 'first', error })
    expect(swarm.service.state()).toMatchObject({
      change: { name: 'second', phase: 'preparing', step: 'cutting' },
      changeFailure: null,
    })
    swarm.model({ kind: 'model-refused', name: 'second', error })
    expect(swarm.service.state()).toMatchObject({
      change: null,
      changeFailure: { name: 'second', error },
    })
    expect(swarm.service.snapshot()).toMatchObject({ complete: true, model: { id: 'test-model' } })
    expect(assigns()).toEqual(before)
  })

  test('wishing back for the served model while answers end gives the change up', () => {
    const { swarm, workers, asker } = fakeRing(model, 2)
    swarm.ask(asker, 'r1')
    choose(swarm)
    choose(swarm, 'back', { model, minStages: 2 })
    expect(swarm.service.state().change).toBeNull()
    answer(workers, 1)
    expect(endOf(asker, 'r1')?.reason).toBe('stop')
    swarm.ask(asker, 'r2')
    expect(asker.all('model')).toEqual([])
    expect(workers[0]?.all('session-start')).toHaveLength(2)
  })

  test('where no device can load it the former model comes back, with the reason', () => {
    const swarm = fakeSwarm(model, 2)
    const workers = [swarm.worker('a'), swarm.worker('b', 1e9, ['assign'])]
    const fail = (worker: FakePeer, code: string): void =>
      worker.say({
        kind: 'stage-state',
        assignment: worker.last('assign').assignment,
        state: 'failed',
        doneBytes: 0,
        totalBytes: 0,
        fetchedBytes: 0,
        error: { code, message: 'layers 3–4: no such operator' },
      })
    choose(swarm)
    fail(at(workers, 1), 'stage-failed')
    swarm.pass(100)
    expect(swarm.service.state()).toMatchObject({
      model: { id: 'test-model' },
      minStages: 2,
      changeFailure: {
        name: 'other',
        error: { code: 'stage-failed', message: 'b: layers 3–4: no such operator' },
      },
    })
    // It could not load that one model; this one it holds as before.
    expect(workers.map((worker) => worker.last('assign').revision)).toEqual(['r1', 'r1'])
    // There is no way back from the way back.
    fail(at(workers, 1), 'stage-failed')
    swarm.pass(100)
    expect(swarm.service.state().model.id).toBe('test-model')
    expect(at(workers, 0).all('model')).toHaveLength(2)
  })

  test('a device that was set aside for a model is tried with the next one', () => {
    const { swarm, workers } = fakeRing(model, 2)
    const third = swarm.worker('third', 1e9, ['assign'])
    third.say({
      kind: 'stage-state',
      assignment: third.last('assign').assignment,
      state: 'failed',
      doneBytes: 0,
      totalBytes: 0,
      fetchedBytes: 0,
      error: { code: 'stage-failed', message: 'no' },
    })
    expect(swarm.service.state().peers.get(third.peer)?.setAside).toBe('no')
    choose(swarm)
    expect(swarm.service.state().peers.get(third.peer)?.setAside).toBeNull()
    expect(workers[0]?.last('assign').revision).toBe('r2')
  })
})

describe('a model that is too large', () => {
  const huge = { model: modelOf({ layerBytes: 2e9 }), minStages: 1 }

  test('does not replace one that is answered with', () => {
    const { swarm } = fakeRing(model, 2)
    expect(whyTooLarge(swarm.service.state(), huge)).toBe(
      "the devices here can't hold all of test-model: no room for layers 1–6 and head",
    )
    expect(whyTooLarge(swarm.service.state(), served)).toBeNull()
  })

  test('may be chosen where nothing is answered yet', () => {
    const swarm = fakeSwarm(model, 2)
    swarm.worker('a')
    expect(whyTooLarge(swarm.service.state(), huge)).toBeNull()
  })
})
