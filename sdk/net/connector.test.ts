import { afterEach, describe, expect, test } from 'vitest'
import { createFakePeerLinks, type TryFate } from '../../test/support/fake-peer-links.ts'
import { createManualTimers, settle } from '../../test/support/manual-timers.ts'
import { testWelcome } from '../../test/support/fake-signaling.ts'
import { createSignalingHub, testOrder } from '../../test/support/signaling-hub.ts'
import { CONNECT_MS, CONNECT_TRIES, RELAY_OPEN_MS } from '../core/limits.ts'
import type { Channel } from './channel.ts'
import { createConnector } from './connector.ts'

const cleanups: (() => void)[] = []
afterEach(() => {
  for (const cleanup of cleanups.splice(0)) cleanup()
})

/** Two connectors with a host between them; `null` = a browser without WebRTC. */
function makeBoth(fatesA: readonly TryFate[] | null, fatesB: readonly TryFate[] | null) {
  const timers = createManualTimers()
  const hub = createSignalingHub(testOrder(true).pair)
  const fakes = createFakePeerLinks(timers)
  const makerA = fatesA === null ? null : fakes.maker(fatesA)
  const makerB = fatesB === null ? null : fakes.maker(fatesB)
  const logs: string[] = []
  const log = (event: string) => logs.push(event)
  const a = createConnector({
    signaling: hub.a.signaling,
    makePeerLink: makerA?.make ?? null,
    timers,
    log,
  })
  const b = createConnector({
    signaling: hub.b.signaling,
    makePeerLink: makerB?.make ?? null,
    timers,
    log,
  })
  hub.a.attach(a)
  hub.b.attach(b)
  cleanups.push(
    () => a.close(),
    () => b.close(),
  )
  return { a, b, hub, timers, logs, makerA, makerB }
}

type Both = ReturnType<typeof makeBoth>

function never(): AbortSignal {
  return new AbortController().signal
}

/** Drives the clock until both ends have their channel or failed. */
async function connectBoth(both: Both, options: { delayB?: number; limitMs?: number } = {}) {
  const results: { a?: Channel | Error; b?: Channel | Error } = {}
  const keep = (end: 'a' | 'b', promise: Promise<Channel>) =>
    promise.then(
      (channel) => (results[end] = channel),
      (error: unknown) => (results[end] = error as Error),
    )
  void keep('a', both.a.connect(testOrder(true), never()))
  if (options.delayB !== undefined) await both.timers.advance(options.delayB)
  void keep('b', both.b.connect(testOrder(false), never()))
  const startMs = both.timers.now()
  const limitMs = options.limitMs ?? 60_000
  while (
    (results.a === undefined || results.b === undefined) &&
    both.timers.now() - startMs < limitMs
  ) {
    await both.timers.advance(50)
  }
  return { ...results, tookMs: both.timers.now() - startMs }
}

function pathOf(result: Channel | Error | undefined): string {
  if (result === undefined) return 'nothing'
  return result instanceof Error ? `${result.name}: ${result.message}` : result.path
}

async function talks(a: Channel, b: Channel): Promise<boolean> {
  const got: number[] = []
  b.onFrame((frame) => got.push(frame[0]!))
  await a.send(new Uint8Array([7]), 'bulk')
  await settle()
  return got[0] === 7
}

describe('the ladder', () => {
  test('PA4 takes the direct rung where it works', async () => {
    const both = makeBoth(['connects'], ['connects'])
    const { a, b, tookMs } = await connectBoth(both)
    expect([pathOf(a), pathOf(b)]).toEqual(['local', 'local'])
    expect(tookMs).toBeLessThan(200)
    expect(both.hub.a.relayedBytes + both.hub.b.relayedBytes).toBe(0)
    expect(await talks(a as Channel, b as Channel)).toBe(true)
  })

  test('PA4 tries again after a failed try, with the tries kept apart', async () => {
    const both = makeBoth(['breaks', 'connects'], ['connects'])
    const { a, b } = await connectBoth(both)
    expect([pathOf(a), pathOf(b)]).toEqual(['local', 'local'])
    expect(both.makerA?.tries()).toBe(2)
  })

  test('PA4 has the other end say that its half failed, so that nobody waits for the limit', async () => {
    const both = makeBoth(['connects'], ['breaks', 'connects'])
    const { a, b, tookMs } = await connectBoth(both)
    expect([pathOf(a), pathOf(b)]).toEqual(['local', 'local'])
    expect(tookMs).toBeLessThan(CONNECT_MS)
  })

  const roads: readonly [string, readonly TryFate[] | null, readonly TryFate[] | null, number][] = [
    ['both ends hear nothing', ['hangs'], ['hangs'], CONNECT_MS * CONNECT_TRIES + 2_000],
    ['only the initiator hangs', ['hangs'], ['connects'], CONNECT_MS * CONNECT_TRIES + 2_000],
    ['only the other end hangs', ['connects'], ['hangs'], CONNECT_MS * CONNECT_TRIES + 2_000],
    ['both break', ['breaks'], ['breaks'], CONNECT_MS + 1_000],
    ['the initiator has no WebRTC', null, ['hangs'], 1_000],
    ['the other end has no WebRTC', ['hangs'], null, 1_000],
    ['neither has WebRTC', null, null, 1_000],
    ['the initiator has no candidates', ['no candidates'], ['hangs'], 1_000],
    ['the other end has no candidates', ['hangs'], ['no candidates'], 1_000],
    ['making a peer throws', ['throws'], ['throws'], CONNECT_MS + 1_000],
  ]
  for (const [what, fatesA, fatesB, limitMs] of roads) {
    test(`PA5 ends on the relay, on both ends, when ${what}`, async () => {
      const both = makeBoth(fatesA, fatesB)
      const { a, b, tookMs } = await connectBoth(both)
      expect([pathOf(a), pathOf(b)]).toEqual(['relay', 'relay'])
      expect(tookMs).toBeLessThanOrEqual(limitMs)
      expect(await talks(a as Channel, b as Channel)).toBe(true)
      expect(await talks(b as Channel, a as Channel)).toBe(true)
    })
  }
})

describe('a link for pieces', () => {
  const order = (initiator: boolean) => ({ ...testOrder(initiator), purpose: 'pieces' as const })

  test('PC2 is direct where that works', async () => {
    const { a, b, timers } = makeBoth(['connects'], ['connects'])
    const both = Promise.all([a.connect(order(true), never()), b.connect(order(false), never())])
    await timers.advance(1_000)
    expect((await both).map(({ path }) => path)).toEqual(['local', 'local'])
  })

  test.each<[string, readonly TryFate[] | null, readonly TryFate[] | null]>([
    ['both ends hear nothing', ['hangs'], ['hangs']],
    ['the initiator has no WebRTC', null, ['hangs']],
    ['the other end has no WebRTC', ['hangs'], null],
  ])('PC2 is not there when %s, and nothing went through the host', async (_, fateA, fateB) => {
    const { a, b, hub, timers } = makeBoth(fateA, fateB)
    const ends = [a.connect(order(true), never()), b.connect(order(false), never())]
    const failed = Promise.all(
      ends.map((end) => expect(end).rejects.toMatchObject({ code: 'link-closed' })),
    )
    await timers.advance(CONNECT_MS * CONNECT_TRIES + 2_000)
    await failed
    expect(hub.a.relayedBytes + hub.b.relayedBytes).toBe(0)
    expect(timers.pending).toBe(0)
  })
})

describe('what a climb leaves behind', () => {
  test('PA5 does not try again where gathering found nothing', async () => {
    const both = makeBoth(['no candidates'], ['hangs'])
    await connectBoth(both)
    expect(both.makerA?.tries()).toBe(1)
  })

  test('PA6 closes every try that it gave up', async () => {
    const both = makeBoth(['hangs', 'breaks'], ['hangs'])
    const { a } = await connectBoth(both)
    expect(pathOf(a)).toBe('relay')
    expect(both.makerA?.tries()).toBe(2)
    expect([both.makerA?.openTries(), both.makerB?.openTries()]).toEqual([0, 0])
  })
})

describe('orders, attempts and early words', () => {
  test('PA3 keeps signals that come before their pair-open', async () => {
    const both = makeBoth(['connects'], ['connects'])
    const { a, b } = await connectBoth(both, { delayB: 300 })
    expect([pathOf(a), pathOf(b)]).toEqual(['local', 'local'])
    expect(both.makerA?.tries()).toBe(1)
  })

  test('PA3 keeps a relay hello that comes before its pair-open', async () => {
    const both = makeBoth(null, ['hangs'])
    const { a, b } = await connectBoth(both, { delayB: 100 })
    expect([pathOf(a), pathOf(b)]).toEqual(['relay', 'relay'])
    expect(both.makerB?.tries()).toBe(0)
  })

  test('PA2 ignores signals of an older attempt and what is no signal', async () => {
    const both = makeBoth(['connects'], ['connects'])
    const connecting = [
      both.a.connect(testOrder(true, 3), never()),
      both.b.connect(testOrder(false, 3), never()),
    ]
    both.b.accept(testOrder(true).pair, 2, { try: 1, signal: { offer: 'wire 99' } })
    for (const junk of [null, 7, {}, { try: 0 }, { try: 1 }, { try: 99, signal: {} }, 'x']) {
      both.b.accept(testOrder(true).pair, 3, junk)
    }
    await both.timers.advance(100)
    expect((await Promise.all(connecting)).map((channel) => channel.path)).toEqual([
      'local',
      'local',
    ])
  })

  test('PA2 replaces an attempt by a higher one and refuses a lower one', async () => {
    const both = makeBoth(['hangs'], ['hangs'])
    const first = both.a.connect(testOrder(true, 1), never())
    const replaced = expect(first).rejects.toMatchObject({ code: 'aborted' })
    const second = both.a.connect(testOrder(true, 2), never())
    await replaced
    await expect(both.a.connect(testOrder(true, 1), never())).rejects.toMatchObject({
      code: 'aborted',
    })
    expect(both.a.connect(testOrder(true, 2), never())).toBe(second)
    second.catch(() => undefined)
  })

  test('PA2 closes the channel of an attempt that was replaced', async () => {
    const both = makeBoth(['connects'], ['connects'])
    const { a } = await connectBoth(both)
    const reasons: string[] = []
    ;(a as Channel).onClose((reason) => reasons.push(reason))
    const next = both.a.connect(testOrder(true, 2), never())
    next.catch(() => undefined)
    expect(reasons).toEqual(['closed: replaced by attempt 2'])
  })

  test('PA6 stops at once when told to, and leaves no timer', async () => {
    const both = makeBoth(['hangs'], ['hangs'])
    const stop = new AbortController()
    const connecting = both.a.connect(testOrder(true), stop.signal)
    const aborted = expect(connecting).rejects.toMatchObject({ code: 'aborted' })
    await both.timers.advance(100)
    stop.abort()
    await aborted
    await settle()
    expect(both.timers.pending).toBe(0)
    await expect(both.a.connect(testOrder(true), stop.signal)).rejects.toMatchObject({
      code: 'aborted',
    })
  })

  test('PA6 close() aborts what is under way', async () => {
    const both = makeBoth(null, null)
    const connecting = both.a.connect(testOrder(true), never())
    const aborted = expect(connecting).rejects.toMatchObject({ code: 'aborted' })
    await both.timers.advance(10)
    both.a.close()
    both.a.close()
    await aborted
    await settle()
    expect(both.timers.pending).toBe(0)
  })
})

describe('the relay', () => {
  test('RL7 is left alone where the host does not name it, and the pair says so', async () => {
    const both = makeBoth(['breaks'], ['breaks'])
    const welcome = testWelcome({ features: ['from the future'] })
    for (const end of [both.hub.a, both.hub.b]) end.setState({ kind: 'open', welcome })
    const { a, b } = await connectBoth(both)
    for (const result of [a, b]) {
      expect(result).toMatchObject({ code: 'link-closed' })
      expect(pathOf(result)).toContain('this host does not relay')
    }
    expect(both.hub.a.relayedBytes + both.hub.b.relayedBytes).toBe(0)
    expect(both.timers.pending).toBe(0)
  })

  test('RL2 closes with the connection to the host', async () => {
    const both = makeBoth(null, null)
    const { a } = await connectBoth(both)
    const reasons: string[] = []
    ;(a as Channel).onClose((reason) => reasons.push(reason))
    both.hub.a.setState({ kind: 'lost', reason: 'cable' })
    expect(reasons).toEqual(['transport: the host connection is lost'])
  })

  test('RL2 says signaling-closed where the host is gone before it opened', async () => {
    const both = makeBoth(null, null)
    both.hub.a.setState({ kind: 'lost', reason: 'cable' })
    const connecting = expect(both.a.connect(testOrder(true), never())).rejects.toMatchObject({
      code: 'signaling-closed',
    })
    await both.timers.advance(100)
    await connecting
  })

  test('RL3 gives up after its limit when the other end never comes', async () => {
    const both = makeBoth(null, null)
    const connecting = expect(both.a.connect(testOrder(true), never())).rejects.toMatchObject({
      code: 'timeout',
    })
    await both.timers.advance(RELAY_OPEN_MS + 10)
    await connecting
    expect(both.timers.pending).toBe(0)
  })

  test('RL4 follows an end that went to the relay after this end had its direct channel', async () => {
    const both = makeBoth(['connects'], ['connects'])
    const { a } = await connectBoth(both)
    const reasons: string[] = []
    ;(a as Channel).onClose((reason) => reasons.push(reason))
    const envelope = new Uint8Array(24)
    new DataView(envelope.buffer).setUint32(4, 1, true)
    both.hub.b.signaling.relay.send(testOrder(true).pair, envelope)
    await settle()
    expect(reasons).toEqual(['closed: the other end went to the relay'])
  })
})
