import type { WireError } from '../errors.ts'
import type { PairId, PeerId, RequestId, SessionId } from '../ids.ts'
import type { BlockRange } from '../model/block-range.ts'
import type { SwarmPlan } from '../plan/assign.ts'
import type { SamplingParams } from '../sampling/params.ts'
import type { FinishReason, RequestTimings } from '../session/request.ts'
import type { RouteEntry, StageReady } from './request-state.ts'
import type { LinkPath, PairState, PeerRole, Pledge, ServedModel } from './state.ts'

/** What happened outside, as checked by the service. */
export type Observation =
  | {
      readonly kind: 'peer-joined'
      readonly peer: PeerId
      readonly name: string
      readonly role: PeerRole
      /** It fetches pieces from peers and gives them; no when absent. */
      readonly sharesPieces?: boolean
    }
  /** The socket was lost; the device may come back. */
  | { readonly kind: 'peer-dropped'; readonly peer: PeerId }
  /** The device said goodbye. */
  | { readonly kind: 'peer-left'; readonly peer: PeerId }
  | {
      readonly kind: 'pledged'
      readonly peer: PeerId
      readonly pledge: Pledge
      /** Of the model whose stored pieces it lists. */
      readonly revision: string
    }
  | {
      readonly kind: 'stage-reported'
      readonly peer: PeerId
      readonly assignment: number
      readonly state: 'fetching' | 'loading' | 'ready' | 'failed'
      readonly doneBytes: number
      readonly totalBytes: number
      readonly fetchedBytes: number
      readonly peerBytes?: number | undefined
      readonly error: WireError | null
    }
  | {
      readonly kind: 'stats-reported'
      readonly peer: PeerId
      readonly assignment: number
      readonly steps: number
      readonly tokens: number
      /** null: no decode step yet. */
      readonly stepMs: number | null
    }
  | {
      readonly kind: 'link-reported'
      readonly peer: PeerId
      readonly pair: PairId
      readonly attempt: number
      readonly state: 'open' | 'closed'
      readonly path: LinkPath
      readonly rttMs: number | null
      readonly error?: WireError | undefined
    }
  /** `sessions`: rows that it has computed of each. */
  | {
      readonly kind: 'beat'
      readonly peer: PeerId
      readonly computing: boolean
      /** It said that it will not be heard for a while. */
      readonly asleep?: boolean | undefined
      readonly sessions: readonly {
        readonly session: SessionId
        readonly epoch: number
        readonly position: number
      }[]
    }
  /** The host itself stood still for so long, ms: nobody's silence in that time means anything. */
  | { readonly kind: 'host-slept'; readonly ms: number }
  | { readonly kind: 'relayed'; readonly pair: PairId; readonly bytes: number }
  | {
      readonly kind: 'asked'
      readonly asker: PeerId
      readonly request: RequestId
      readonly prompt: readonly number[]
      /** What the asker has of an answer that lost its host; absent for a new question. */
      readonly answered?: readonly number[] | undefined
      readonly maxTokens: number
      readonly stopIds: readonly number[]
      readonly sampling: SamplingParams
    }
  | ({ readonly kind: 'stage-ready'; readonly key: string } & StageReady)
  | {
      readonly kind: 'token-chosen'
      readonly key: string
      readonly position: number
      readonly sampled: {
        readonly token: number
        readonly logprob: number
        readonly top: readonly { readonly token: number; readonly logprob: number }[]
      }
    }
  | { readonly kind: 'timings-reported'; readonly key: string; readonly timings: RequestTimings }
  /** Mean compute of the decode steps of one stage of a request, ms. */
  | {
      readonly kind: 'step-reported'
      readonly key: string
      readonly stage: number
      readonly computeMs: number
    }
  | ModelObservation

/** What the operator wants served, and what became of it on the host. A newer one replaces an older one. */
export type ModelObservation =
  /** It is being made ready; told again for each step. */
  | { readonly kind: 'model-wanted'; readonly name: string; readonly step: string }
  /** It is ready, and the devices can hold it. */
  | { readonly kind: 'model-chosen'; readonly name: string; readonly served: ServedModel }
  | { readonly kind: 'model-refused'; readonly name: string; readonly error: WireError }

/** What `decide` settled; the service applies it and tells the peers. */
export type Decision =
  /** A stage computed wrong, broke the rules or kept silent: counts against the device, once for each incident. */
  | { readonly kind: 'struck'; readonly peer: PeerId; readonly reason: string }
  /** A stage had no memory for a step: it gets less to hold, and the next time nothing. */
  | { readonly kind: 'outgrown'; readonly peer: PeerId; readonly reason: string }
  | { readonly kind: 'peer-forgotten'; readonly peer: PeerId }
  /** Connected, but not heard: answers go round it; after a while others take its blocks. */
  | { readonly kind: 'peer-silent'; readonly peer: PeerId; readonly silence: 'short' | 'long' }
  /** It came back and did not pledge in time: its former pledge counts no more. */
  | { readonly kind: 'pledge-expired'; readonly peer: PeerId }
  | {
      readonly kind: 'assigned'
      readonly peer: PeerId
      readonly range: BlockRange | null
      readonly keep: BlockRange | null
      readonly reason: string
    }
  | { readonly kind: 'planned'; readonly plan: SwarmPlan }
  | { readonly kind: 'routed'; readonly route: readonly RouteEntry[] | null }
  | {
      readonly kind: 'pair-opened'
      readonly from: PeerId
      readonly to: PeerId
      /** `ring` when absent. */
      readonly purpose?: PairState['purpose']
    }
  /** Nobody who fetches can be given another source for now. */
  | { readonly kind: 'sources-sought' }
  | { readonly kind: 'pair-retried'; readonly pair: PairId }
  | { readonly kind: 'pair-closed'; readonly pair: PairId; readonly reason: string }
  | {
      readonly kind: 'session-opened'
      readonly key: string
      readonly session: SessionId
      /** One more than that of the session's former route; 1 for a new one. */
      readonly epoch: number
      readonly stages: readonly RouteEntry[]
      /** Rows of the session from earlier epochs that still hold. */
      readonly valid: number
      /** The former route holds: it is left before a device of it is missed. No when absent. */
      readonly isMove?: boolean
    }
  | { readonly kind: 'session-started'; readonly key: string }
  /** The stages free what they kept of an answer that is over. */
  | { readonly kind: 'session-released'; readonly session: SessionId }
  /** A device frees what it has of an answer that waits for a route, for one whose turn it is. */
  | { readonly kind: 'rows-freed'; readonly key: string; readonly peer: PeerId }
  /** The route of an answer does not hold any more. `faulty`: devices that are to blame; `doubted`: one of them may be. */
  | {
      readonly kind: 'session-broken'
      readonly key: string
      readonly error: WireError
      readonly faulty: readonly PeerId[]
      readonly doubted?: readonly PeerId[]
    }
  | {
      readonly kind: 'request-ended'
      readonly key: string
      readonly reason: FinishReason
      readonly error: WireError | null
    }

  /** No answer runs any more: the ring is built anew. `failure`: this is the way back. */
  | {
      readonly kind: 'model-switched'
      readonly name: string
      readonly served: ServedModel
      readonly failure: { readonly name: string; readonly error: WireError } | null
    }
  /** The ring answers with the new model. */
  | { readonly kind: 'model-settled' }

export type SwarmEvent = Observation | Decision
