import type { WireError } from '../errors.ts'
import { REPAIR_MS } from '../limits.ts'
import { inRepair, makeRoom, type Claim } from './admission.ts'
import { answerEnd, rowsThatHold } from './answer-end.ts'
import { openMissing } from './decide-pairs.ts'
import { incompleteError, isOnTheWay } from './decide-requests.ts'
import type { Decision } from './events.ts'
import type { Break, RequestState, RouteEntry } from './request-state.ts'
import type { SwarmState } from './state.ts'
import { isPausing, repairWay } from './repair-way.ts'
import { bestRoute, missingRanges, neighbours } from './views.ts'

/** Faults of devices without a token in between after which an answer is given up: it may be what breaks them. */
const FAULTS_MAX = 4
/** Without anybody who could close the ring an answer waits this long: a page that is loaded anew is back by then. */
const HOPELESS_MS = 12_000

/**
 * Answers whose route broke get another one: the same session in a new epoch, with as few new stages as possible. What has
 * no room at a device waits for it, the one that broke first before the others.
 */
export function repairSessions(state: SwarmState, now: number): readonly Decision[] {
  const claims: Claim[] = []
  for (const request of inRepair(state)) {
    if (request.broken === null) continue
    const end = answerEnd(state, request)
    // Its last token came and the word of its end is lost: going on would add to it.
    if (end !== null) return [{ kind: 'request-ended', key: request.key, reason: end, error: null }]
    const decisions = repair(state, request, { broken: request.broken, now, claims })
    if (decisions.length > 0) return decisions
  }
  return []
}

type Turn = {
  readonly broken: Break
  readonly now: number
  /** Of those before; one that must wait for room adds its own. */
  readonly claims: Claim[]
}

function repair(state: SwarmState, request: RequestState, turn: Turn): readonly Decision[] {
  const { broken, now, claims } = turn
  const { key } = request
  const isLate = now - broken.since > REPAIR_MS
  const isOver = isLate || broken.shunned.length >= FAULTS_MAX
  if (!isOver && isPausing(request, now)) return []
  const way = repairWay(state, request, { claims, now })
  if (isLate && way?.isFull === true) return [givenUp(key, withoutRoom(broken, now))]
  if (isOver || (way === null && isHopeless(state, turn)))
    return [givenUp(key, withoutRoute(state, broken, now))]
  if (way === null) return []
  if (!way.isFull) return goOn(state, request, way.stages)
  claims.push({ request, stages: way.stages })
  return []
}

function isHopeless(state: SwarmState, { broken, now }: Turn): boolean {
  if (now - broken.since <= HOPELESS_MS || isOnTheWay(state)) return false
  return bestRoute(state, false) === null
}

function goOn(
  state: SwarmState,
  request: RequestState,
  stages: readonly RouteEntry[],
): readonly Decision[] {
  const missing = openMissing(state, neighbours(stages))
  if (missing.length > 0) return missing
  const { key, session } = request
  if (session === null) return []
  return [
    ...makeRoom(state, stages, { request, adopted: session }),
    {
      kind: 'session-opened',
      key,
      session,
      epoch: request.epoch + 1,
      stages,
      valid: rowsThatHold(request),
    },
  ]
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

function withoutRoom({ error, since }: Break, now: number): WireError {
  const seconds = Math.round((now - since) / 1_000)
  const why = `the devices that hold its layers had no room beside other answers for ${seconds} s`
  return { code: 'too-many-requests', message: `${error.message}; ${why}`.slice(0, 500) }
}
