import { lengthOf } from '../session/token-list.ts'
import type { SwarmEvent } from './events.ts'
import type { Leaving, Move, RequestState } from './request-state.ts'
import type { SwarmState } from './state.ts'

/** What a session's next epoch means for what its devices hold of it. */

type Opened = Extract<SwarmEvent, { kind: 'session-opened' }>

/** A device that was away may come back with rows of a text that the session had before: only what all begin with holds. */
export function validAfter(
  { retained }: SwarmState,
  request: RequestState,
  { session, stages, valid }: Opened,
): Pick<RequestState, 'valid' | 'sharedRows'> {
  const former = retained.get(session)
  const sharedRows = former ? Math.min(former.sharedRows, valid) : request.sharedRows
  // Those of the former text cut it with this epoch; that they did they say with their answer.
  const followers = former ? former.stages.map(({ peer }) => peer) : request.followers
  return {
    valid: stages.map(({ peer }) =>
      followers.includes(peer) ? valid : Math.min(valid, sharedRows),
    ),
    sharedRows,
  }
}

/** Whoever is left although it is there keeps what it has; a part in the new route ends that. */
export function leavingAfter(
  { leaving, stages, epoch }: RequestState,
  { stages: next, isMove = false }: Opened,
): readonly Leaving[] {
  const left = isMove ? stages.map((stage) => ({ ...stage, epoch })) : []
  return [...leaving, ...left].filter(({ peer }) => !next.some((stage) => stage.peer === peer))
}

/** The move that was just made. */
export function moveOf({ answer, repairs }: RequestState, now: number): Move {
  return { at: now, answered: lengthOf(answer), repairs }
}
