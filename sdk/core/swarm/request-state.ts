import type { WireError } from '../errors.ts'
import type { PeerId, RequestId, SessionId } from '../ids.ts'
import type { BlockRange } from '../model/block-range.ts'
import type { SamplingParams } from '../sampling/params.ts'
import type { FinishReason, RequestTimings } from '../session/request.ts'
import type { StageRows } from '../session/resume-plan.ts'
import type { TokenList } from '../session/token-list.ts'

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
  /** Devices of a broken route that had to free its caches for others. */
  readonly freed: readonly PeerId[]
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
