import type { WireError } from '../errors.ts'
import type { ModelId, PairId, PeerId, PieceHash, RequestId, SessionId } from '../ids.ts'
import { RETAIN_MS } from '../limits.ts'
import type { BlockRange } from '../model/block-range.ts'
import type { Provider } from '../model/provider.ts'
import type { SwarmPlan } from '../plan/assign.ts'
import type { PlanModel } from '../plan/device.ts'
import type { Speed } from '../plan/speed.ts'
import type { SamplingParams } from '../sampling/params.ts'
import type { FinishReason, RequestTimings } from '../session/request.ts'
import type { StageRows } from '../session/resume-plan.ts'
import type { TokenList } from '../session/token-list.ts'

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
  /** Why the device is not used any more; null = it is. */
  readonly setAside: string | null
  /** Sessions that failed through this device's own fault, or that it kept waiting. */
  readonly strikes: number
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

export type RouteEntry = { readonly peer: PeerId; readonly range: BlockRange }

export type RequestPhase =
  'queued' | 'opening' | 'running' | 'repairing' | 'done' | 'failed' | 'cancelled'

/** A stage that is linked and ready for the present epoch, and what it has of the session from earlier ones. */
export type StageReady = StageRows & { readonly peer: PeerId }

/** What broke an answer, until its next token. */
export type Break = {
  /** When it broke first, ms. */
  readonly since: number
  readonly error: WireError
  /** Breaks since the last token. */
  readonly count: number
  /** Devices that are to blame: passed over where there are others. */
  readonly shunned: readonly PeerId[]
}

/** A device that an answer was moved away from. It keeps its caches of that epoch until the next token. */
export type Leaving = RouteEntry & { readonly epoch: number }

/** The last time that an answer was moved although its route held. */
export type Move = {
  /** ms */
  readonly at: number
  /** Tokens and repairs up to then. */
  readonly answered: number
  readonly repairs: number
}

/** What a lap of a session is expected to take. */
export type LapPrediction = {
  readonly lapMs: number
  /** False while a device or a link of the route was never measured: then it is a guess. */
  readonly isMeasured: boolean
}

/** One request and the session that computes it. Token ids are kept until the end, to go on after a repair. */
export type RequestState = {
  /** Asker and request id: unique. */
  readonly key: string
  readonly asker: PeerId
  readonly request: RequestId
  readonly phase: RequestPhase
  readonly prompt: readonly number[]
  readonly promptLength: number
  /** Its asker lost the host in the middle and asked again: it may wait for a ring. */
  readonly resumed: boolean
  /** Clamped to the model's window. */
  readonly maxTokens: number
  readonly stopIds: readonly number[]
  readonly sampling: SamplingParams
  readonly session: SessionId | null
  readonly epoch: number
  readonly stages: readonly RouteEntry[]
  /** Not part of the route any more, but there if it breaks before the next token. */
  readonly leaving: readonly Leaving[]
  readonly moved: Move | null
  /** Rows of the session from earlier epochs that hold for this one, by stage. */
  readonly valid: readonly number[]
  /** With how many rows all texts begin that the session ever had; Infinity = it had this one only. */
  readonly sharedRows: number
  /** Devices that opened it with this text, so that they have no rows of another one any more. */
  readonly followers: readonly PeerId[]
  /** Rows whose tokens the first stage had from the host when this epoch started. */
  readonly givenRows: number
  readonly ready: readonly StageReady[]
  /** Tokens of the answer so far. */
  readonly answer: TokenList
  /** null = whole. */
  readonly broken: Break | null
  /** Routes that took over from a broken one. */
  readonly repairs: number
  readonly startedAt: number | null
  readonly firstTokenMs: number | null
  /** When a token came last or a stage got on, ms: the idle sweep goes by it. */
  readonly progressAt: number
  /** Rows that each stage has computed, as far as they told. */
  readonly positions: readonly number[]
  readonly timings: RequestTimings | null
  /** What a lap of the present route was expected to take; null before it has one. */
  readonly prediction: LapPrediction | null
  /** Mean compute of a decode step by stage, ms; null before a stage reported. */
  readonly stageMs: readonly (number | null)[]
  /** Half the round trip of the link behind each stage when the laps were timed last, ms. */
  readonly wireMs: readonly (number | null)[]
  readonly reason: FinishReason | null
  readonly error: WireError | null
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

/** A session whose answer is over and whose caches the stages keep for a next question that begins alike. */
export type Retained = {
  readonly session: SessionId
  readonly epoch: number
  readonly stages: readonly RouteEntry[]
  /** Prompt and answer. */
  readonly text: readonly number[]
  /** As in RequestState. */
  readonly sharedRows: number
  /** When the answer ended, ms. */
  readonly since: number
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
