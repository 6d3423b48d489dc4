import { QUEUE_WAIT_MS, SESSION_IDLE_MS, SESSION_OPEN_MS } from '../../sdk/core/limits.ts'
import type { PeerId } from '../../sdk/core/ids.ts'
import { sameRange } from '../../sdk/core/model/block-range.ts'
import { kvBytesPerToken } from '../../sdk/core/model/manifest.ts'
import { createStageSizes, weightBytes } from '../../sdk/core/plan/memory.ts'
import { rowsOf } from '../../sdk/core/swarm/admission.ts'
import { requestKey } from '../../sdk/core/swarm/apply-requests.ts'
import type { SwarmEvent } from '../../sdk/core/swarm/events.ts'
import type { RouteEntry } from '../../sdk/core/swarm/request-state.ts'
import type { PeerState, SwarmState } from '../../sdk/core/swarm/state.ts'
import { bestRoute, isActive, isOver, isReady } from '../../sdk/core/swarm/views.ts'

/** What must hold after every event of the host. Each check gives its objections; none is the rule. */
export type Check = (before: SwarmState, event: SwarmEvent, after: SwarmState) => string[]

/**
 * A block that had a ready holder is not without one because of an order, unless its holder's pledge shrank under it, or
 * the ring is open: such a one may be planned anew.
 */
export const coverageHolds: Check = (before, event, after) => {
  if (event.kind !== 'assigned') return []
  const had = readyBlocks(before)
  const has = readyBlocks(after)
  const peer = before.peers.get(event.peer)
  if (peer !== undefined && isTooLarge(before, peer)) return []
  if (bestRoute(before, false) === null) return []
  return [...had]
    .filter((block) => !has.has(block))
    .map((block) => `block ${block} has no holder any more: ${event.peer} was moved`)
}

/**
 * No order takes more than its device pledged, nor than turned out to fit; and no event of any kind adds caches to a device
 * beyond that. What counts is what the host has given and not taken back (`heldBytes`).
 */
export const pledgeHolds: Check = (before, event, after) => {
  const peer = event.kind === 'assigned' ? after.peers.get(event.peer) : undefined
  const orders =
    peer !== undefined && isTooLarge(after, peer)
      ? [`${peer.peer} was given more than it pledged`]
      : []
  if (after.requests === before.requests && after.retained === before.retained) return orders
  return [...orders, ...[...after.peers.values()].flatMap((one) => exceeded(before, one, after))]
}

/** A device that itself pledged less than it holds has not been given too much: only more on top of it would be. */
function exceeded(before: SwarmState, { peer: id }: PeerState, after: SwarmState): string[] {
  const peer = after.peers.get(id)
  const bytes = heldBytes(after, id)
  if (peer?.pledge == null || bytes <= heldBytes(before, id)) return []
  const room = Math.min(peer.pledge.memoryBytes, peer.memoryLimit ?? Infinity)
  return bytes > room ? [`${id} holds ${bytes} bytes in caches and weights, and lent ${room}`] : []
}

/**
 * Weights of a device's range, and caches: each answer that is routed over it or was moved away from it and awaits its next
 * token, with all rows that it may grow to; each broken one that has not been told to free them; and kept ones with the
 * rows that they have; all in whole steps. An answer that has moved on counts no more as soon as the device was told:
 * it frees its caches before it reads any later order, on the same socket. Nor do blocks count that it does not hold any
 * more, nor what a device keeps by itself after it lost its connection (RE8).
 */
function heldBytes(state: SwarmState, id: PeerId): number {
  const { model } = state
  const peer = state.peers.get(id)
  const range = peer?.assignment?.range
  if (!range || peer?.pledge == null) return 0
  const { provider } = peer.pledge
  const isHere = (stage: RouteEntry): boolean => stage.peer === id && sameRange(stage.range, range)
  let rows = 0
  for (const request of state.requests.values()) {
    if (!isActive(request) || request.freed.includes(id)) continue
    if ([...request.stages, ...request.leaving].some(isHere)) rows += rowsOf(state, request)
  }
  for (const { stages, text } of state.retained.values())
    if (stages.some(isHere)) rows += rowsOf(state, { promptLength: text.length, maxTokens: 0 })
  const blocks = model.blocks.slice(range.start, range.end)
  const layers = blocks.filter(({ kind }) => kind === 'layer').length
  const weights = blocks.reduce((sum, block) => sum + weightBytes(model, provider, block), 0)
  return weights + rows * layers * kvBytesPerToken(model)
}

/** Tokens of an answer are chosen one position after the other, and none after its end. Counts for itself. */
export function createTokenOrder(): (event: SwarmEvent) => string[] {
  const next = new Map<string, number>()
  return (event) => {
    if (event.kind === 'asked') {
      const { asker, request, prompt, answered = [] } = event
      next.set(requestKey(asker, request), prompt.length + answered.length)
    }
    if (event.kind === 'request-ended') next.delete(event.key)
    if (event.kind !== 'token-chosen') return []
    const expected = next.get(event.key)
    if (expected === undefined) return [`${event.key} is over and got a token`]
    next.set(event.key, expected + 1)
    return event.position === expected
      ? []
      : [`${event.key} got position ${event.position}, not ${expected}`]
  }
}

/** The number of a session's route only rises, and no two running requests share a session. */
export const sessionsApart: Check = (before, event, after) => {
  const objections: string[] = []
  if (event.kind !== 'session-opened') return objections
  const was = before.requests.get(event.key)
  const is = after.requests.get(event.key)
  if (was !== undefined && is !== undefined && is.epoch <= was.epoch)
    objections.push(`${event.key} went from epoch ${was.epoch} to ${is.epoch}`)
  const same = [...after.requests.values()].filter(
    (request) => request.session === event.session && !isOver(request),
  )
  if (same.length > 1) objections.push(`session ${event.session} is used ${same.length} times`)
  return objections
}

/** Links have two ends that are here. */
export const pairsHaveEnds: Check = (_before, _event, after) =>
  [...after.pairs.values()].flatMap((pair) =>
    [pair.from, pair.to]
      .filter((end) => !after.peers.has(end))
      .map((end) => `${pair.pair} leads to ${end}, who is gone`),
  )

/** A tick looks at the limits ten times a second, and an event may bring it forward. */
const SLACK_MS = 1_000

/** Requests that neither went on nor ended within their limit. */
export function overdue(state: SwarmState, now: number): string[] {
  return [...state.requests.values()].flatMap((request) => {
    if (isOver(request)) return []
    const silent = now - request.progressAt
    const limit = LIMITS[request.phase] ?? SESSION_IDLE_MS
    return silent > limit + SLACK_MS
      ? [`${request.key} is ${request.phase} without progress for ${Math.round(silent)} ms`]
      : []
  })
}

const LIMITS: Readonly<Record<string, number>> = {
  queued: QUEUE_WAIT_MS,
  opening: SESSION_OPEN_MS,
  running: SESSION_IDLE_MS,
}

const CHECKS: Readonly<Record<string, Check>> = {
  coverageHolds,
  pledgeHolds,
  sessionsApart,
  pairsHaveEnds,
}

export type Watch = {
  observe(event: SwarmEvent, after: SwarmState, now: number): void
  /** A host that starts anew begins anew. */
  reset(): void
  readonly objections: readonly string[]
}

/** More would say nothing new. */
const KEPT = 20

/** Watches a host, event by event. */
export function createWatch(start: SwarmState): Watch {
  const objections: string[] = []
  let before = start
  let tokensInOrder = createTokenOrder()
  return {
    observe(event, after, now) {
      for (const [name, check] of Object.entries(CHECKS))
        note(name, check(before, event, after), now)
      note('tokensInOrder', tokensInOrder(event), now)
      note('overdue', overdue(after, now), now)
      before = after
    },
    reset() {
      before = start
      tokensInOrder = createTokenOrder()
    },
    objections,
  }

  function note(name: string, found: readonly string[], now: number): void {
    for (const text of found)
      if (objections.length < KEPT) objections.push(`${name} at ${now.toFixed(0)} ms: ${text}`)
  }
}

function readyBlocks(state: SwarmState): Set<number> {
  const blocks = new Set<number>()
  for (const peer of state.peers.values()) {
    const range = peer.assignment?.range
    if (!isReady(peer) || !range) continue
    for (let block = range.start; block < range.end; block += 1) blocks.add(block)
  }
  return blocks
}

const sizesOf = new WeakMap<SwarmState['model'], ReturnType<typeof createStageSizes>>()

function isTooLarge(state: SwarmState, { pledge, memoryLimit, assignment }: PeerState): boolean {
  const range = assignment?.range
  if (!range || pledge === null) return false
  const sizes = sizesOf.get(state.model) ?? createStageSizes(state.model)
  sizesOf.set(state.model, sizes)
  const room = Math.min(pledge.memoryBytes, memoryLimit ?? Infinity)
  return sizes.bytes(pledge.provider, range) > room
}
