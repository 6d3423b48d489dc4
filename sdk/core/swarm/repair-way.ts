import { createAdmission, heldBy, inRepair, type Claim } from './admission.ts'
import type { RequestState, RouteEntry } from './request-state.ts'
import type { SwarmState } from './state.ts'
import { bestRoute, drainingOf, type RouteLimits } from './views.ts'

/** The third try comes after a pause, which doubles: a link that breaks at once would be tried a hundred times. */
const PAUSE_MS = 500
const PAUSE_MAX_MS = 8_000
/** Where only a device that failed is left, it is asked again after this: its provider may be started anew by then. */
const SECOND_CHANCE_MS = 2_000

/** Where a broken answer would go on; `isFull`: as soon as there is room. */
export type RepairWay = { readonly stages: readonly RouteEntry[]; readonly isFull: boolean }

type Turn = {
  /** Of broken answers whose turn comes before. */
  readonly claims: readonly Claim[]
  readonly now: number
}

/** null: nobody holds what it lacks. */
export function repairWay(
  state: SwarmState,
  request: RequestState,
  { claims, now }: Turn,
): RepairWay | null {
  const stages = heldBy(state, request)
  const lastResort = drainingOf(state, request)
  const shunned = request.broken?.shunned ?? []
  const find = (limits: RouteLimits, without = shunned): readonly RouteEntry[] | null =>
    bestRoute(state, true, {
      ...limits,
      memory: { stages, shunned: without, lastResort },
    })?.stages.map(({ peer, range }) => ({ peer, range })) ?? null
  const mayReturn = now - request.progressAt > SECOND_CHANCE_MS
  // Room at a device that failed is no reason to go back there while others could go on.
  const around = find({})
  const wanted = around ?? (mayReturn ? find({}, []) : null)
  if (wanted === null) return null
  const admits = createAdmission(state, request, claims)
  const route = find({ admits }, around === null ? [] : shunned)
  return { stages: route ?? wanted, isFull: route === null }
}

/** It broke again and again, and is tried anew later. */
export function isPausing({ broken, progressAt }: RequestState, now: number): boolean {
  const breaks = broken?.count ?? 0
  const pause = breaks < 3 ? 0 : Math.min(PAUSE_MS * 2 ** (breaks - 3), PAUSE_MAX_MS)
  return now - progressAt < pause
}

/** What broken answers wait for that have no room now, in their turn. */
export function repairClaims(state: SwarmState, now: number): readonly Claim[] {
  const claims: Claim[] = []
  for (const request of inRepair(state)) {
    if (isPausing(request, now)) continue
    const way = repairWay(state, request, { claims, now })
    if (way?.isFull === true) claims.push({ request, stages: way.stages })
  }
  return claims
}
