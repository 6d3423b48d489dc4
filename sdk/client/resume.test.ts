import { describe, expect, test } from 'vitest'
import { createFakeSignaling, testWelcome } from '../../test/support/fake-signaling.ts'
import { createLetterTokenizer, letters } from '../../test/support/letter-tokenizer.ts'
import { CrowdError } from '../core/errors.ts'
import type { ModelId, RequestId, SessionId } from '../core/ids.ts'
import { LOSSES_MAX, QUEUE_WAIT_MS, RESUME_MS, SESSION_IDLE_MS } from '../core/limits.ts'
import { GREEDY } from '../core/sampling/params.ts'
import type { ClientMessageOf } from '../protocol/client-to-server.ts'
import { createClient } from './client.ts'
import type { GenerateEvent, GenerateRequest } from './client-types.ts'

const WELCOME = testWelcome({ model: 'm' as ModelId, revision: 'rev' })
const LOST = { kind: 'lost', reason: 'cable' } as const
const [H, E, L] = letters('Hel') as [number, number, number]

/** A question that is read at once; the test is the host. */
function asking(request: GenerateRequest, signal?: AbortSignal) {
  const signaling = createFakeSignaling()
  const back = (welcome = WELCOME): void => signaling.setState({ kind: 'open', welcome })
  back()
  const timers = new Map<() => void, number>()
  let requests = 0
  const client = createClient({
    signaling,
    tokenizer: createLetterTokenizer(),
    model: 'm' as ModelId,
    revision: 'rev',
    contextLength: 100,
    newRequestId: () => `r${(requests += 1)}` as RequestId,
    later(ms, task) {
      timers.set(task, ms)
      return () => timers.delete(task)
    },
  })
  const events: GenerateEvent[] = []
  const done = (async () => {
    for await (const event of client.generate(request, signal)) events.push(event)
  })()
  // Who awaits it hears of a failure; the others look at the events.
  done.catch(() => undefined)
  return {
    signaling,
    client,
    events,
    done,
    back,
    lose: () => signaling.setState(LOST),
    limits: () => [...timers.values()],
    expire: () => [...timers.keys()].forEach((task) => task()),
    token: (id: number, position: number, request = `r${requests}`) =>
      signaling.deliver({
        kind: 'ask-token',
        request: request as RequestId,
        position,
        sampled: { token: id, logprob: -0.5, top: [{ token: id, logprob: -0.5 }] },
      }),
    accept: () =>
      signaling.deliver({
        kind: 'ask-accepted',
        request: `r${requests}` as RequestId,
        session: 1 as SessionId,
        stages: [],
      }),
    end: () =>
      signaling.deliver({
        kind: 'ask-end',
        request: `r${requests}` as RequestId,
        reason: 'stop',
        timings: null,
      }),
    asks: () =>
      signaling.sent.filter((sent): sent is ClientMessageOf<'ask'> => sent.kind === 'ask'),
    kinds: () => events.map(({ kind }) => kind),
    text: () => events.map((event) => (event.kind === 'delta' ? event.text : '')).join(''),
  }
}

describe('an answer that lost its host', () => {
  test('RS4 is asked for again behind its last token, and nothing else of the question changes', async () => {
    const sampling = { temperature: 0.8, seed: 7, frequencyPenalty: 0.5 }
    const kit = asking({ prompt: 'abc', maxTokens: 5, sampling })
    kit.accept()
    kit.token(H, 3)
    kit.token(E, 4)
    kit.lose()
    expect(kit.asks()).toHaveLength(1)
    kit.back()
    const [first, second] = kit.asks()
    expect(first).toMatchObject({ maxTokens: 5, sampling: { ...GREEDY, ...sampling } })
    expect(first).not.toHaveProperty('answered')
    expect(second).toEqual({ ...first, request: 'r2', answered: [H, E] })
    kit.accept()
    kit.token(L, 5)
    kit.end()
    await kit.done
    expect(kit.kinds()).toEqual([
      'accepted',
      'delta',
      'delta',
      'interrupted',
      'resumed',
      'accepted',
      'delta',
      'end',
    ])
    expect(kit.events[3]).toEqual({ kind: 'interrupted', reason: 'cable' })
    expect(kit.text()).toBe('Hel')
    expect(kit.events.at(-1)).toMatchObject({ reason: 'stop', ids: [H, E, L] })
    // The host ended the first one with its connection, and the second one is over.
    expect(kit.signaling.sent.some(({ kind }) => kind === 'cancel')).toBe(false)
  })

  test('RS5 what the host still sends of a former request is not part of it, however late it is read', async () => {
    const kit = asking({ prompt: 'abc' })
    // All of this comes before the reader sees the first token.
    kit.token(H, 3)
    kit.lose()
    kit.back()
    kit.token(E, 4, 'r1')
    kit.token(L, 4)
    kit.end()
    await kit.done
    expect(kit.asks()[1]?.answered).toEqual([H])
    expect(kit.text()).toBe('Hl')
  })

  test('RS5 a token of any other position breaks it off', async () => {
    const kit = asking({ prompt: 'abc' })
    kit.token(H, 3)
    kit.lose()
    kit.back()
    // As from a host that began anew.
    kit.token(H, 3)
    await expect(kit.done).rejects.toMatchObject({ code: 'bad-message' })
    await expect(kit.done).rejects.toThrow('position 3 where 4 was next')
    expect(kit.text()).toBe('H')
    expect(kit.signaling.sent.at(-1)).toEqual({ kind: 'cancel', request: 'r2' })
  })

  test('RS4 a question without a token yet is asked again as one that waits', async () => {
    const kit = asking({ prompt: 'abc' })
    kit.lose()
    kit.back()
    expect(kit.asks()[1]?.answered).toEqual([])
    kit.end()
    await kit.done
  })

  test('RS4 a host that serves another model is not asked', async () => {
    for (const welcome of [
      testWelcome({ model: 'm' as ModelId, revision: 'other' }),
      testWelcome({ model: 'n' as ModelId, revision: 'rev' }),
    ]) {
      const kit = asking({ prompt: 'abc' })
      kit.token(H, 3)
      kit.lose()
      kit.back(welcome)
      await expect(kit.done).rejects.toMatchObject({ code: 'model-changed' })
      expect(kit.asks()).toHaveLength(1)
      expect(kit.text()).toBe('H')
    }
  })

  test('RS4 only the word of the end was lost: an answer as long as it was to be is complete', async () => {
    const kit = asking({ prompt: 'abc', maxTokens: 2 })
    kit.token(H, 3)
    kit.token(E, 4)
    kit.lose()
    await kit.done
    expect(kit.events.at(-1)).toMatchObject({ kind: 'end', reason: 'length', timings: null })
    kit.back()
    expect(kit.asks()).toHaveLength(1)
  })

  test('RS4 the host is waited for, and not for ever', async () => {
    const kit = asking({ prompt: 'abc' })
    kit.token(H, 3)
    kit.lose()
    await expect.poll(kit.limits).toEqual([RESUME_MS])
    kit.expire()
    await expect(kit.done).rejects.toMatchObject({ code: 'signaling-closed' })
    await expect(kit.done).rejects.toThrow('did not come back within 60 s')
    expect(kit.text()).toBe('H')
    kit.back()
    expect(kit.asks()).toHaveLength(1)
  })

  test('after the host is back it has its turn to wait for, and then each token its limit', async () => {
    const kit = asking({ prompt: 'abc' })
    kit.token(H, 3)
    kit.lose()
    kit.back()
    await expect.poll(kit.limits).toEqual([QUEUE_WAIT_MS])
    kit.accept()
    await expect.poll(kit.limits).toEqual([SESSION_IDLE_MS])
    kit.end()
    await kit.done
  })

  test('a line that breaks again and again without a token ends it; a token begins the count anew', async () => {
    const kit = asking({ prompt: 'abc' })
    const flap = (times: number): void => {
      for (let time = 0; time < times; time += 1) {
        kit.lose()
        kit.back()
      }
    }
    flap(LOSSES_MAX)
    kit.token(H, 3)
    flap(LOSSES_MAX)
    expect(kit.asks()).toHaveLength(1 + 2 * LOSSES_MAX)
    kit.lose()
    await expect(kit.done).rejects.toMatchObject({ code: 'signaling-closed' })
    await expect(kit.done).rejects.toThrow('again and again')
  })

  test('stopping ends the wait at once, and the host is not asked when it is back', async () => {
    const abort = new AbortController()
    const kit = asking({ prompt: 'abc' }, abort.signal)
    kit.token(H, 3)
    kit.lose()
    abort.abort()
    await kit.done
    expect(kit.events.at(-1)).toMatchObject({ kind: 'end', reason: 'cancelled', ids: [H] })
    kit.back()
    expect(kit.asks()).toHaveLength(1)
  })

  test.each([
    ['refuses', { kind: 'refused', error: new CrowdError('wrong-secret', 'no') }, 'wrong-secret'],
    ['is left', { kind: 'closed' }, 'signaling-closed'],
  ] as const)('a host that %s ends it', async (_, state, code) => {
    const kit = asking({ prompt: 'abc' })
    kit.lose()
    kit.signaling.setState(state)
    await expect(kit.done).rejects.toMatchObject({ code })
  })

  test('an error of the host after it came back ends it with the text so far', async () => {
    const kit = asking({ prompt: 'abc' })
    kit.token(H, 3)
    kit.lose()
    kit.back()
    kit.signaling.deliver({
      kind: 'ask-end',
      request: 'r2' as RequestId,
      reason: 'error',
      timings: null,
      error: { code: 'ring-incomplete', message: 'nobody came back' },
    })
    await expect(kit.done).rejects.toMatchObject({ code: 'ring-incomplete' })
    expect(kit.text()).toBe('H')
  })

  test('a stop string may begin before and end behind the interruption', async () => {
    const kit = asking({ prompt: 'a', stop: ['xyz'] })
    const [w, x, y, z] = letters('wxyz') as [number, number, number, number]
    for (const [index, id] of [w, x].entries()) kit.token(id, 1 + index)
    kit.lose()
    kit.back()
    for (const [index, id] of [y, z].entries()) kit.token(id, 3 + index)
    await kit.done
    expect(kit.text()).toBe('w')
    const deltas = kit.events.filter((event) => event.kind === 'delta')
    expect(deltas.map(({ chosen }) => [chosen?.text, chosen?.top.length])).toEqual([
      ['w', 1],
      ['x', 1],
      ['y', 1],
      ['z', 1],
    ])
    expect(kit.events.at(-1)).toMatchObject({ reason: 'stop', ids: [w, x, y, z] })
    expect(kit.signaling.sent.at(-1)).toEqual({ kind: 'cancel', request: 'r2' })
  })

  test('several answers of one client go on, each with its own text', async () => {
    const kit = asking({ prompt: 'abc' })
    const events: GenerateEvent[] = []
    const other = (async () => {
      for await (const event of kit.client.generate({ prompt: 'xy' })) events.push(event)
    })()
    kit.token(H, 3, 'r1')
    kit.token(E, 2, 'r2')
    kit.lose()
    kit.back()
    expect(kit.asks().map(({ request, answered }) => [request, answered])).toEqual([
      ['r1', undefined],
      ['r2', undefined],
      ['r3', [H]],
      ['r4', [E]],
    ])
    kit.client.close()
    await expect(kit.done).rejects.toMatchObject({ code: 'aborted' })
    await expect(other).rejects.toMatchObject({ code: 'aborted' })
  })
})
