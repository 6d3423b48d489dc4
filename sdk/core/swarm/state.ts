import type { WireError } from '../errors.ts'
import type { ModelId, PairId, PeerId, PieceHash, SessionId } from '../ids.ts'
import { RETAIN_MS } from '../limits.ts'
import type { BlockRange } from '../model/block-range.ts'
import type { Provider } from '../model/provider.ts'
import type { SwarmPlan } from '../plan/assign.ts'
import type { PlanModel } from '../plan/device.ts'
import type { Speed } from '../plan/speed.ts'
import type { RequestState, Retained, RouteEntry } from './request-state.ts'

export type PeerRole = 'worker' | 'asker' | 'watcher'

export type Pledge = {
  readonly memoryBytes: number
  readonly provider: Provider
  readonly threads: number
  /** Pieces that it has stored. */
  readonly cached: ReadonlySet<PieceHash>
  readonly hidden: boolean
}

/** Order to a worker; `range: null` = spare. Progress belongs to this order and no other. */
export type Assignment = {
  readonly number: number
  readonly range: BlockRange | null
  /** As a spare: what it keeps stored without loading it. */
  readonly keep: BlockRange | null
  readonly reason: string
  readonly state: 'ordered' | 'fetching' | 'loading' | 'ready' | 'failed'
  readonly doneBytes: number
  readonly totalBytes: number
  readonly fetchedBytes: number
  /** Those of them that came from peers. */
  readonly peerBytes: number
}

export type PeerState = {
  readonly peer: PeerId
  readonly name: string
  readonly role: PeerRole
  /** When the socket was lost, ms; null while connected. The place is kept for REJOIN_MS. */
  readonly droppedAt: number | null
  /** Its last beat, ms; null before the first. */
  readonly heardAt: number | null
  /** For how long it is not heard; null = it is. */
  readonly silence: 'short' | 'long' | null
  /** It said with its last beat that it computes a step. */
  readonly computing: boolean
  /** Since when its pledge is waited for, ms: it joined, or another model is served. */
  readonly pledgeDueSince: number
  /** A returning device counts with its former pledge until it pledges again. */
  readonly pledge: Pledge | null
  /** Pledged on this connection and for the present model: only then may it be given orders. */
  readonly pledged: boolean
  /** It fetches pieces from peers and gives them. */
  readonly sharesPieces: boolean
  /** Who said that it sent wrong bytes for a piece. */
  readonly accusers: readonly PeerId[]
  /** Since when its page is out of sight, ms; null = it is in sight. */
  readonly hiddenSince: number | null
  readonly assignment: Assignment | null
  /** Mean of recent decode steps with the present range, ms. */
  readonly stepMs: number | null
  /** The device's own, whatever it held when it was measured; null before the first measurement. */
  readonly speed: Speed | null
  readonly steps: number
  readonly tokens: number
  /** When it last told of steps that were new, ms; null before the first. */
  readonly computedAt: number | null
  /** Bytes that turned out to be too many here; caps the pledge. */
  readonly memoryLimit: number | null
  /** It served and failed for its memory, so that it got less to hold; the next time it is set aside. */
  readonly shrunk: boolean
  /** Why the device is not used any more; null = it is. */
  readonly setAside: string | null
  /** Incidents in which answers broke off through this device's own fault, or were kept waiting by it. */
  readonly strikes: number
  /** When the last of them began, or one that cost it a part of what it holds, ms; null before the first. */
  readonly struckAt: number | null
  /** Links that broke at this device in the middle of an answer; either end may be at fault. Fades with good answers. */
  readonly doubts: number
  /** Answers that ended well since the last strike; counted only while there are strikes. */
  readonly goodAnswers: number
}

export type LinkPath = 'direct' | 'turn' | 'relay' | 'local'

/** The link between two peers. `from` is the initiator; on a link for pieces it is the one that fetches. */
export type PairState = {
  readonly pair: PairId
  readonly purpose: 'ring' | 'pieces'
  readonly from: PeerId
  readonly to: PeerId
  /** Raised for every new try; reports about older ones are stale. */
  readonly attempt: number
  readonly state: 'opening' | 'open' | 'closed'
  /** Ends that reported this attempt open. */
  readonly openEnds: readonly PeerId[]
  readonly path: LinkPath | null
  readonly rttMs: number | null
  readonly relayedBytes: number
  /** When the present state began, ms. */
  readonly since: number
  /** Attempts that failed since the link was last open. */
  readonly failures: number
}

export type SwarmModel = PlanModel & {
  readonly id: ModelId
  readonly revision: string
  readonly vocabSize: number
  readonly eosTokenIds: readonly number[]
}

/** A model, and into how many stages it is cut at least. */
export type ServedModel = { readonly model: SwarmModel; readonly minStages: number }

/** The way from the served model to another one. */
export type ModelChange = {
  /** The model's, as the operator gave it. */
  readonly name: string
  /** Made ready on the host; then answers end; then devices load it. */
  readonly phase: 'preparing' | 'draining' | 'loading'
  /** When the phase began, ms. */
  readonly since: number
  /** What is being prepared, for people. */
  readonly step: string
  /** While draining: what is served next. */
  readonly next: ServedModel | null
  /** While loading: what is served again where the devices can't load the new one. */
  readonly former: ServedModel | null
  /** While loading: why a device failed to. */
  readonly error: WireError | null
}

/** Everything the host knows, immutable: only `apply` makes a new one. */
export type SwarmState = {
  readonly model: SwarmModel
  readonly minStages: number
  /** null = none is under way. */
  readonly change: ModelChange | null
  /** Why the last change came to nothing; null once another one was asked for. */
  readonly changeFailure: { readonly name: string; readonly error: WireError } | null
  readonly peers: ReadonlyMap<PeerId, PeerState>
  readonly pairs: ReadonlyMap<PairId, PairState>
  /** Cost of hops over links that are closed now, by both peers, ms. */
  readonly knownHops: ReadonlyMap<string, number>
  /** In the order of arrival; ended ones stay a while for the dashboard. */
  readonly requests: ReadonlyMap<string, RequestState>
  /** The oldest first. */
  readonly retained: ReadonlyMap<SessionId, Retained>
  /** How long caches are kept after an answer, ms; 0 = not at all. */
  readonly retainMs: number
  /** Raised by whatever the planner looks at; `planned` is the number it saw last. */
  readonly topology: number
  readonly planned: number
  /** Raised by whatever the router looks at. */
  readonly links: number
  readonly routed: number
  /** When sources of pieces were sought last and none was found, ms; -Infinity once one may be found again. */
  readonly sourcesSoughtAt: number
  /** Blocks that the last plan could give to nobody. */
  readonly unassigned: readonly BlockRange[]
  /** The last plan: who is to hold what and why. null before the first. */
  readonly plan: SwarmPlan | null
  /** The chain for the next session, linked ahead of time; null = not covered. */
  readonly route: readonly RouteEntry[] | null
  readonly nextAssignment: number
  readonly nextPair: number
  /** Part of every pair's id, so that pairs of an earlier host are never met again. */
  readonly pairPrefix: string
  readonly nextSession: number
  readonly relayedBytes: number
  /** Bytes of pieces that devices fetched, by where they came from. */
  readonly pieceBytes: { readonly host: number; readonly peers: number }
  readonly laps: number
}

export function emptySwarm(input: {
  readonly model: SwarmModel
  readonly minStages: number
  /** Where session numbers begin: random, so that a restarted host doesn't reuse them. */
  readonly firstSession: number
  /** Random for the same reason: tabs remember pairs and ignore attempts that they had already. */
  readonly pairPrefix: string
  /** RETAIN_MS when absent. */
  readonly retainMs?: number
}): SwarmState {
  return {
    model: input.model,
    minStages: input.minStages,
    change: null,
    changeFailure: null,
    peers: new Map(),
    pairs: new Map(),
    knownHops: new Map(),
    requests: new Map(),
    retained: new Map(),
    retainMs: input.retainMs ?? RETAIN_MS,
    topology: 0,
    planned: 0,
    links: 0,
    routed: 0,
    sourcesSoughtAt: -Infinity,
    unassigned: [{ start: 0, end: input.model.blocks.length }],
    plan: null,
    route: null,
    nextAssignment: 1,
    nextPair: 1,
    pairPrefix: input.pairPrefix,
    nextSession: input.firstSession,
    relayedBytes: 0,
    pieceBytes: { host: 0, peers: 0 },
    laps: 0,
  }
}
