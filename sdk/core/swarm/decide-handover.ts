import type { SessionId } from '../ids.ts'
import { makeRoom } from './admission.ts'
import { rowsThatHold } from './answer-end.ts'
import type { Decision } from './events.ts'
import { handoverRoutes, type Handover } from './handover-routes.ts'
import type { SwarmState } from './state.ts'
import { neighbours, pairBetween } from './views.ts'

/**
 * Answers leave a device before it is missed: the same session in a new epoch, over a route whose links are open. Until
 * they are the present route goes on.
 */
export function handOver(state: SwarmState, now: number): readonly Decision[] {
  const next = handoverRoutes(state, now).find(({ stages }) =>
    neighbours(stages).every(([a, b]) => pairBetween(state, a, b)?.state === 'open'),
  )
  const session = next?.request.session ?? null
  return next === undefined || session === null ? [] : move(state, next, session)
}

function move(
  state: SwarmState,
  { request, stages }: Handover,
  session: SessionId,
): readonly Decision[] {
  const isNew = ({ peer }: { peer: string }): boolean =>
    !request.stages.some((stage) => stage.peer === peer)
  return [
    ...makeRoom(state, stages.filter(isNew), { request, adopted: session }),
    {
      kind: 'session-opened',
      key: request.key,
      session,
      epoch: request.epoch + 1,
      stages,
      valid: rowsThatHold(request),
      isMove: true,
    },
  ]
}
