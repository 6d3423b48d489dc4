import { describe, expect, test } from 'vitest'
import { CrowdError } from '../../sdk/core/errors.ts'
import type { GenerateEvent } from '../../sdk/client/client-types.ts'
import { aSwarm, peerId } from '../fixtures/snapshots.ts'
import { answerFacts, computedBy, endingOf, waitingFor } from './answer-facts.ts'
import { applyEvent, failTurn, isRunning, startTurn, toMessages, type Turn } from './turn.ts'

const delta = (text: string): GenerateEvent => ({ kind: 'delta', text, token: 1, logprob: -1 })
const timings = {
  promptTokens: 20,
  tokens: 10,
  firstTokenMs: 80,
  lapMs: 20,
  computeMs: 15,
  hopMs: 2.5,
  hops: 2,
}

const asking = (question: string) => ({ question, model: aSwarm().model })

function answered(question: string, answer: string): Turn {
  const written = applyEvent(startTurn(1, asking(question), 0), delta(answer), 50)
  return applyEvent(written, { kind: 'end', reason: 'stop', timings, ids: [1] }, 60)
}

describe('a turn', () => {
  test('collects the deltas into the answer', () => {
    let turn = startTurn(1, asking('Why?'), 100)
    expect(isRunning(turn)).toBe(true)
    turn = applyEvent(turn, delta('Be'), 180)
    turn = applyEvent(turn, delta('cause.'), 200)
    expect(turn).toMatchObject({ answer: 'Because.', phase: 'writing', firstAtMs: 180, tokens: 2 })
    turn = applyEvent(turn, { kind: 'end', reason: 'stop', timings: null, ids: [] }, 210)
    expect(turn.phase).toBe('done')
    expect(isRunning(turn)).toBe(false)
  })

  test('keeps what was written when a stage is lost', () => {
    const written = applyEvent(startTurn(1, asking('Why?'), 0), delta('Beca'), 10)
    const failed = failTurn(written, new CrowdError('stage-lost', 'the phone left'))
    expect(failed).toMatchObject({ answer: 'Beca', phase: 'failed', error: { code: 'stage-lost' } })
  })

  test('waits for a host that is lost, and goes on in the same answer', () => {
    const lost = { kind: 'interrupted', reason: 'cable' } as const
    let turn = applyEvent(startTurn(1, asking('Why?'), 0), delta('Be'), 10)
    turn = applyEvent(turn, lost, 20)
    expect(waitingFor(turn)).toContain('connection to the host is lost')
    expect(isRunning(turn)).toBe(true)
    turn = applyEvent(turn, { kind: 'resumed' }, 30)
    expect(waitingFor(turn)).toContain('host is back')
    turn = applyEvent(turn, { kind: 'accepted', stages: [] }, 40)
    turn = applyEvent(turn, delta('cause'), 50)
    expect(turn).toMatchObject({ answer: 'Because', phase: 'writing', interruption: null })
    const failed = failTurn(applyEvent(turn, lost, 60), new CrowdError('signaling-closed', 'gone'))
    expect([failed.answer, waitingFor(failed)]).toEqual(['Because', ''])
    const stopped = applyEvent(
      applyEvent(turn, lost, 60),
      { kind: 'end', reason: 'cancelled', timings: null, ids: [] },
      70,
    )
    expect(waitingFor(stopped)).toBe('')
  })

  test('a stop on request is no failure, however it arrives', () => {
    const turn = startTurn(1, asking('Why?'), 0)
    expect(failTurn(turn, new CrowdError('aborted', 'stopped'))).toMatchObject({
      phase: 'stopped',
      error: null,
    })
    expect(
      applyEvent(turn, { kind: 'end', reason: 'cancelled', timings: null, ids: [] }, 1).phase,
    ).toBe('stopped')
  })
})

describe('the conversation', () => {
  test('is sent whole, in order, with the new question last', () => {
    expect(toMessages([answered('A?', 'a'), answered('B?', 'b')], 'C?')).toEqual([
      { role: 'user', content: 'A?' },
      { role: 'assistant', content: 'a' },
      { role: 'user', content: 'B?' },
      { role: 'assistant', content: 'b' },
      { role: 'user', content: 'C?' },
    ])
  })

  test('leaves out a question that got no text, so that roles alternate', () => {
    const failed = failTurn(startTurn(2, asking('B?'), 0), new CrowdError('timeout', 'too slow'))
    const roles = toMessages([answered('A?', 'a'), failed], 'C?').map(({ role }) => role)
    expect(roles).toEqual(['user', 'assistant', 'user'])
  })
})

describe('the line under an answer', () => {
  test('says tokens, first token, speed, laps and where the time went', () => {
    expect(answerFacts(answered('A?', 'a'))).toEqual([
      '10 tokens',
      'first after 80 ms',
      '50 tokens/s',
      '10 laps of 20 ms over 2 hops',
      '75% compute, 25% wire and waiting',
    ])
  })

  test('falls back on the page clock when the ring gave no timings', () => {
    let turn = startTurn(1, asking('A?'), 1_000)
    for (const at of [1_200, 1_300, 1_400]) turn = applyEvent(turn, delta('x'), at)
    expect(answerFacts(turn)).toEqual(['3 tokens', 'first after 200 ms', '10 tokens/s'])
  })

  test('names the devices with their layers', () => {
    const stages = [
      { peer: peerId('p1'), name: 'attic', range: { start: 0, end: 4 } },
      { peer: peerId('p2-long-id-of-a-peer'), name: '', range: { start: 4, end: 8 } },
    ]
    const turn = applyEvent(startTurn(1, asking('A?'), 0), { kind: 'accepted', stages }, 1)
    expect(computedBy(turn)).toEqual([
      { name: 'attic', holds: 'embedding and layers 1–3' },
      { name: 'p2-long-', holds: 'layers 4–6 and head' },
    ])
  })

  test('says why an answer ended early', () => {
    const cut = applyEvent(
      applyEvent(startTurn(1, asking('A?'), 0), delta('a'), 1),
      { kind: 'end', reason: 'length', timings: null, ids: [] },
      2,
    )
    expect(endingOf(cut)).toMatch(/limit/)
    expect(endingOf(answered('A?', 'a'))).toBe('')
  })
})
