import type { BlockRange } from '../core/model/block-range.ts'
import type { SampledToken, SamplingParams } from '../core/sampling/params.ts'
import type { FinishReason, RequestTimings } from '../core/session/request.ts'
import type { PeerId } from '../core/ids.ts'
import type { ChatMessage } from './tokenizer.ts'

export type { FinishReason, RequestTimings }

export type GenerateRequest = {
  /** Through the model's chat template, or … */
  readonly messages?: readonly ChatMessage[]
  /** … text as it is, with no template, or … */
  readonly prompt?: string
  /** … token ids. Exactly one of the three. */
  readonly promptIds?: readonly number[]
  /** Up to the end of the context when absent. */
  readonly maxTokens?: number
  readonly sampling?: Partial<SamplingParams>
  /** Strings at which the answer ends; they are not part of it. At most 16. */
  readonly stop?: readonly string[]
}

export type GenerateEvent =
  /** The ring took the request: who computes what. */
  | {
      readonly kind: 'accepted'
      readonly stages: readonly {
        readonly peer: PeerId
        readonly name: string
        readonly range: BlockRange
      }[]
    }
  /** Complete characters only; concatenated deltas are the answer. */
  | {
      readonly kind: 'delta'
      readonly text: string
      readonly token: number
      readonly logprob: number
      /**
       * The token's own text, before anything is held back for a stop string, and its alternatives. Absent
       * where the end of the answer gives out what was held.
       */
      readonly chosen?: { readonly text: string; readonly top: SampledToken['top'] }
    }
  /** The connection to the host is lost: the answer waits for it, and what came before stays valid. */
  | { readonly kind: 'interrupted'; readonly reason: string }
  /** The host is back and was asked to go on behind the last token; `accepted` comes when a ring does. */
  | { readonly kind: 'resumed' }
  | {
      readonly kind: 'end'
      readonly reason: FinishReason
      readonly timings: RequestTimings | null
      readonly ids: readonly number[]
    }

/** The role that asks for text. */
export interface Client {
  /**
   * An answer whose host is lost waits for it and goes on behind its last token, with the text that it would have had.
   * @throws CrowdError while iterating: ring-incomplete, prompt-too-long, too-many-requests, stage-lost,
   * stage-failed, model-changed, signaling-closed, timeout, aborted; deltas given before stay valid.
   */
  generate(request: GenerateRequest, signal?: AbortSignal): AsyncIterable<GenerateEvent>
  close(): void
}
