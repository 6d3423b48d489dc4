import type { CrowdError } from '../core/errors.ts'
import type { SessionId } from '../core/ids.ts'
import type { BlockRange } from '../core/model/block-range.ts'
import type { Manifest } from '../core/model/manifest.ts'
import type { Provider } from '../core/model/provider.ts'
import type { SampledToken, SamplingParams } from '../core/sampling/params.ts'

/** What a device turned out to be able to run, found by running. */
export type RunnerReport = {
  readonly provider: Provider
  /** WASM or CPU threads; 1 where the page is not cross-origin isolated. */
  readonly threads: number
  /** Why better providers were passed over, for people; empty when the first choice passed. */
  readonly notes: readonly string[]
}

/** The bytes of one block, given away to the runner (transferred to its thread). */
export type BlockBytes = { readonly graph: Uint8Array | null; readonly data: Uint8Array }

/** One step: S new tokens of one session from `position` on. The KV cache is cut to `position` first. */
export type StageStep = {
  readonly session: SessionId
  readonly position: number
  readonly input:
    | { readonly kind: 'tokens'; readonly ids: Int32Array }
    /** f32 [S, H], owned by the runner from here on. */
    | { readonly kind: 'hidden'; readonly data: Float32Array }
  /**
   * Only for a stage with the head: choose the token after the last row. `null` fills the caches only
   * (all but the last chunk of a prefill). `history` = prompt and answer so far, empty where not needed;
   * `promptLength` says where the answer begins in it.
   */
  readonly sample: {
    readonly params: SamplingParams
    readonly history: Int32Array
    readonly promptLength: number
  } | null
}

export type StageOutput = {
  /** Time inside the provider, ms. */
  readonly computeMs: number
} & (
  | { readonly kind: 'hidden'; readonly data: Float32Array /* [S, H] */ }
  | { readonly kind: 'token'; readonly sampled: SampledToken }
  | { readonly kind: 'nothing' }
)

/**
 * PORT. Runs one stage (a range of blocks of one model) on one device. Calls may overlap; the runner
 * queues them and a failed call does not disturb the next one.
 */
export interface StageRunner {
  /**
   * Chooses a provider by running a self-test. Called first; and again after the device was lost or its
   * thread was killed, when every other call fails with stage-failed: setStage then wants all blocks anew.
   * @throws CrowdError provider-unavailable, self-test-failed, timeout
   */
  start(): Promise<RunnerReport>
  /**
   * Prepares for a range; blocks of the former range that are not in the new one are freed, the ones in
   * both are kept. Another range or model ends all sessions. Returns the blocks whose bytes are wanted.
   */
  setStage(manifest: Manifest, range: BlockRange): Promise<number[]>
  /** Loads one wanted block. @throws CrowdError out-of-memory, model-invalid, model-unsupported */
  loadBlock(block: number, bytes: BlockBytes): Promise<void>
  /**
   * After a failure the session holds what is before the step's position.
   * @throws CrowdError bad-frame (what came in doesn't fit this stage), prompt-too-long (beyond the
   * context), non-finite, stage-failed (also a position beyond what is cached), too-many-requests (no place
   * for one more session), out-of-memory, timeout
   */
  run(step: StageStep): Promise<StageOutput>
  /** Frees the caches of a session; unknown sessions are fine. */
  release(session: SessionId): Promise<void>
  /**
   * Called when everything it held is gone, also where no call was waiting; only runners that have a thread of
   * their own know. A new `start` makes it work again.
   */
  onLost?(listener: (error: CrowdError) => void): void
  /** Frees everything. Idempotent. */
  close(): Promise<void>
}
