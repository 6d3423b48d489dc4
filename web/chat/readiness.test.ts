import { expect, test } from 'vitest'
import { CrowdError } from '../../sdk/core/errors.ts'
import { anOpenState, aPeer, aSwarm, peerId } from '../fixtures/snapshots.ts'
import { describeRing, whyBlocked } from './readiness.ts'
import { requestOptions } from './settings.ts'

test('a question may be sent only when everything is there', () => {
  const open = anOpenState()
  expect(whyBlocked(open, aSwarm(), 'ready')).toBe('')
  expect(whyBlocked({ kind: 'connecting' }, aSwarm(), 'ready')).not.toBe('')
  expect(whyBlocked({ kind: 'lost', reason: 'gone' }, aSwarm(), 'ready')).toMatch(/host/)
  const error = new CrowdError('wrong-secret', 'no')
  expect(whyBlocked({ kind: 'refused', error }, null, 'ready')).not.toBe('')
  expect(whyBlocked(open, aSwarm(), 'loading')).toMatch(/tokenizer/)
  expect(whyBlocked(open, null, 'ready')).not.toBe('')
})

test('an incomplete ring says what is missing in the words of the host', () => {
  const advice = '2 of 6 layers missing: open one more tab'
  expect(whyBlocked(anOpenState(), aSwarm({ complete: false, advice }), 'ready')).toBe(advice)
  expect(whyBlocked(anOpenState(), aSwarm({ complete: false }), 'ready')).not.toBe('')
})

test('a complete ring counts only devices that are ready with layers', () => {
  const spare = aPeer({ peer: peerId('p2'), state: 'spare', range: null })
  expect(describeRing(aSwarm({ peers: [aPeer(), spare] }))).toBe(
    '1 device holds all 6 layers of crowdtalk-2.6m.',
  )
})

test('settings become a request: greedy by default, out of range brought back', () => {
  expect(requestOptions({ maxTokens: null, temperature: 0, seed: 0 })).toEqual({
    sampling: { temperature: 0, seed: 0 },
  })
  expect(requestOptions({ maxTokens: 12.7, temperature: 9, seed: -4 })).toEqual({
    maxTokens: 12,
    sampling: { temperature: 2, seed: 0 },
  })
  expect(requestOptions({ maxTokens: 0, temperature: undefined, seed: null })).toEqual({
    sampling: { temperature: 0, seed: 0 },
  })
})
