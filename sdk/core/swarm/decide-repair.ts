import type { WireError } from '../errors.ts'
import { REPAIR_MS } from '../limits.ts'
import { answerEnd, rowsThatHold } from './answer-end.ts'
import { openMissing } from './decide-pairs.ts'
import { incompleteError, isOnTheWay } from './decide-requests.ts'
import type { Decision } from './events.ts'
import type { Break, RequestState } from './request-state.ts'
import type { SwarmState } from './state.ts'
import type { PeerId } from '../ids.ts'
import type { Route } from '../plan/route.ts'
import { bestRoute, drainingOf, missingRanges, neighbours } from './views.ts'

/** Faults of devices without a token in between after which an answer is given up: it may be what breaks them. */
const FAULTS_MAX = 4
/** The third try comes after a pause, which doubles: a link that breaks at once would be tried a hundred times. */
const PAUSE_MS = 500
const PAUSE_MAX_MS = 8_000
/** Where only a device that failed is left, it is asked again after this: its provider may be started anew by then. */
const SECOND_CHANCE_MS = 2_000
/** Without anybody who could close the ring an answer waits this long: a page that is loaded anew is back by then. */
const HOPELESS_MS = 12_000

/** Answers whose route broke get another one: the same session in a new epoch, with as few new stages as possible. */
export function repairSessions(state: SwarmState, now: number): readonly Decision[] {
  for (const request of state.requests.values()) {
    if (request.phase !== 'repairing' || request.broken === null) continue
    const end = answerEnd(state, request)
    // Its last token came and the word of its end is lost: going on would add to it.
    if (end !== null) return [{ kind: 'request-ended', key: request.key, reason: end, error: null }]
    const decisions = repair(state, request, { broken: request.broken, now })
    if (decisions.length > 0) return decisions
  }
  return []
}

function repair(
  state: SwarmState,
  request: RequestState,
  { broken, now }: { readonly broken: Break; readonly now: number },
): readonly Decision[] {
  const { key, session, stages } = request
  const isLate = now - broken.since > REPAIR_MS
  if (session === null || isLate || broken.shunned.length >= FAULTS_MAX)
    return [givenUp(key, withoutRoute(state, broken, now))]
  if (now - request.progressAt < pauseMs(broken.count)) return []
  const lastResort = drainingOf(state, request)
  const routeWithout = (shunned: readonly PeerId[]): Route | null =>
    bestRoute(state, true, { memory: { stages, shunned, lastResort } })
  const mayReturn = now - request.progressAt > SECOND_CHANCE_MS
  const route = routeWithout(broken.shunned) ?? (mayReturn ? routeWithout([]) : null)
  if (route === null) {
    if (isOnTheWay(state) || bestRoute(state, false) !== null || now - broken.since <= HOPELESS_MS)
      return []
    return [givenUp(key, withoutRoute(state, broken, now))]
  }
  const missing = openMissing(state, neighbours(route.stages))
  if (missing.length > 0) return missing
  return [
    {
      kind: 'session-opened',
      key,
      session,
      epoch: request.epoch + 1,
      stages: route.stages.map(({ peer, range }) => ({ peer, range })),
      valid: rowsThatHold(request),
    },
  ]
}

function pauseMs(breaks: number): number {
  return breaks < 3 ? 0 : Math.min(PAUSE_MS * 2 ** (breaks - 3), PAUSE_MAX_MS)
}

function givenUp(key: string, error: WireError): Decision {
  return { kind: 'request-ended', key, reason: 'error', error }
}

function withoutRoute(state: SwarmState, { error, since, count }: Break, now: number): WireError {
  const seconds = Math.round((now - since) / 1_000)
  const tried = count > 1 ? `, ${count} routes broke` : ''
  const why = missingRanges(state).length > 0 ? `: ${incompleteError(state).message}` : ''
  const message = `${error.message}; nobody took over within ${seconds} s${tried}${why}`
  return { code: error.code, message: message.slice(0, 500) }
}
