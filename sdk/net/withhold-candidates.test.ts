import { expect, test } from 'vitest'
import { testOrder } from '../../test/support/signaling-hub.ts'
import type { MakePeerLink, PeerTryDeps } from './peer-link.ts'
import { withholdCandidates } from './withhold-candidates.ts'

const CANDIDATE = { type: 'candidate', candidate: { candidate: 'candidate:1 1 UDP 1 10.0.0.1 9' } }
const SDP = 'v=0\r\na=mid:0\r\na=candidate:1 1 UDP 1 10.0.0.1 9\r\na=end-of-candidates\r\na=x\r\n'

function setUp(initiator: boolean) {
  const sent: unknown[] = []
  const taken: unknown[] = []
  let say: PeerTryDeps['onSignal'] = () => undefined
  const make: MakePeerLink = ({ onSignal }) => {
    say = onSignal
    return {
      link: new Promise(() => undefined),
      accept: (signal) => taken.push(signal),
      close: () => undefined,
    }
  }
  const begun = withholdCandidates(make)({
    order: testOrder(initiator),
    onSignal: (signal) => sent.push(signal),
  })
  return { sent, taken, begun, say: (signal: unknown) => say(signal) }
}

test('PA1 the end that begins says where it is only after the answer', () => {
  const { sent, taken, begun, say } = setUp(true)
  say({ type: 'offer', sdp: SDP })
  say(CANDIDATE)
  begun.accept(CANDIDATE)
  expect(sent).toEqual([{ type: 'offer', sdp: 'v=0\r\na=mid:0\r\na=x\r\n' }])
  begun.accept({ type: 'answer', sdp: SDP })
  say(CANDIDATE)
  expect(sent.slice(1)).toEqual([CANDIDATE, CANDIDATE])
  expect(taken).toEqual([CANDIDATE, { type: 'answer', sdp: SDP }])
})

test('PA1 the end that answers keeps nothing back', () => {
  const { sent, say } = setUp(false)
  say(CANDIDATE)
  say({ type: 'answer', sdp: SDP })
  expect(sent).toEqual([CANDIDATE, { type: 'answer', sdp: SDP }])
})
