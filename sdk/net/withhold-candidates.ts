import type { MakePeerLink } from './peer-link.ts'

/**
 * The end that begins keeps its candidates back until the answer is there. Without them the other end can't connect
 * earlier, which node-datachannel doesn't survive: it checks the other's certificate against an answer that it has not got,
 * and gives up.
 */
export function withholdCandidates(make: MakePeerLink): MakePeerLink {
  return ({ order, onSignal }) => {
    if (!order.initiator) return make({ order, onSignal })
    const kept: unknown[] = []
    let isAnswered = false
    const begun = make({
      order,
      onSignal(signal) {
        if (!isAnswered && hasField(signal, 'candidate')) kept.push(signal)
        else onSignal(withoutCandidates(signal))
      },
    })
    return {
      link: begun.link,
      close: begun.close,
      accept(signal) {
        begun.accept(signal)
        if (isAnswered || !hasField(signal, 'sdp')) return
        isAnswered = true
        for (const candidate of kept) onSignal(candidate)
      },
    }
  }
}

/** An offer may have candidates in it. */
function withoutCandidates(signal: unknown): unknown {
  if (!hasField(signal, 'sdp') || typeof signal.sdp !== 'string') return signal
  const lines = /^a=(?:candidate:.*|end-of-candidates)\r?\n/gm
  return { ...signal, sdp: signal.sdp.replaceAll(lines, '') }
}

function hasField<Field extends string>(
  value: unknown,
  field: Field,
): value is Readonly<Record<Field, unknown>> {
  return typeof value === 'object' && value !== null && field in value
}
