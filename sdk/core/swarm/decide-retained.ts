import { RETAINED_PER_STAGE, RETAINED_ROWS_MIN } from '../limits.ts'
import type { Decision } from './events.ts'
import type { PeerId } from '../ids.ts'
import { tokensOf } from '../session/token-list.ts'
import type { RequestState, Retained } from './request-state.ts'
import type { SwarmState } from './state.ts'
import { stillServes } from './views.ts'

/** Kept sessions that are too old, that a stage can't go on with, or that are too many for a device. */
export function releaseRetained(state: SwarmState, now: number): readonly Decision[] {
  const counts = new Map<PeerId, number>()
  const decisions: Decision[] = []
  const isDraining = state.change?.phase === 'draining'
  for (const former of [...state.retained.values()].reverse()) {
    const isUseless =
      isDraining ||
      now - former.since > state.retainMs ||
      !former.stages.every((stage) => stillServes(state, stage))
    let isOneTooMany = false
    for (const { peer } of former.stages) {
      const count = (counts.get(peer) ?? 0) + 1
      counts.set(peer, count)
      isOneTooMany ||= count > RETAINED_PER_STAGE
    }
    if (isUseless || isOneTooMany)
      decisions.push({ kind: 'session-released', session: former.session })
  }
  return decisions
}

/** The kept session that has the most of a question, and of its answer so far, in its caches; null where none has enough. */
export function adoptable(
  state: SwarmState,
  { prompt, answer }: Pick<RequestState, 'prompt' | 'answer'>,
): { readonly former: Retained; readonly rows: number } | null {
  const text = answer === null ? prompt : [...prompt, ...tokensOf(answer)]
  let best: { former: Retained; rows: number } | null = null
  for (const former of state.retained.values()) {
    // The last row is computed again: its outcome is the next token.
    const rows = Math.min(commonLength(former.text, text), text.length - 1)
    if (rows >= RETAINED_ROWS_MIN && rows > (best?.rows ?? 0)) best = { former, rows }
  }
  return best
}

function commonLength(a: readonly number[], b: readonly number[]): number {
  const end = Math.min(a.length, b.length)
  for (let at = 0; at < end; at += 1) if (a[at] !== b[at]) return at
  return end
}
