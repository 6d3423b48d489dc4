import { advise } from '../plan/advice.ts'
import { missingRanges } from './views.ts'
import type { SwarmState } from './state.ts'

/** What is missing and what to do, for people; empty when every block is ready. */
export function swarmAdvice(state: SwarmState): string {
  const workers = [...state.peers.values()].filter((peer) => peer.role === 'worker')
  const ranges = new Set(
    workers.flatMap((peer) => {
      const range = peer.assignment?.range
      return range ? [`${range.start} ${range.end}`] : []
    }),
  )
  return advise({
    model: state.model,
    minStages: state.minStages,
    missing: missingRanges(state),
    unassigned: state.unassigned,
    stages: ranges.size,
    pledges: workers.flatMap((peer) =>
      peer.pledge === null
        ? []
        : [{ bytes: peer.pledge.memoryBytes, provider: peer.pledge.provider }],
    ),
  })
}
