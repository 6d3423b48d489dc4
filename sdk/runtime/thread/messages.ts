import type { WireError } from '../../core/errors.ts'
import type { SessionId } from '../../core/ids.ts'
import type { BlockRange } from '../../core/model/block-range.ts'
import type { Manifest } from '../../core/model/manifest.ts'
import type { BlockBytes, RunnerReport, StageOutput, StageStep } from '../stage-runner.ts'

/**
 * Owner to compute thread. `id` ties the reply to its request; both ends are our own code. `Options` choose
 * the provider, which differs between a tab and Node.
 */
export type ThreadRequest<Options> = { readonly id: number } & (
  | { readonly kind: 'start'; readonly options: Options }
  | { readonly kind: 'set-stage'; readonly manifest: Manifest; readonly range: BlockRange }
  | { readonly kind: 'load-block'; readonly block: number; readonly bytes: BlockBytes }
  | { readonly kind: 'run'; readonly step: StageStep }
  | { readonly kind: 'release'; readonly session: SessionId }
  | { readonly kind: 'close' }
)

/** Compute thread to owner: exactly one reply for each request. */
export type ThreadReply = { readonly id: number } & (
  | { readonly kind: 'started'; readonly report: RunnerReport }
  | { readonly kind: 'stage-set'; readonly wanted: number[] }
  | { readonly kind: 'ran'; readonly output: StageOutput }
  | { readonly kind: 'done' }
  | { readonly kind: 'failed'; readonly error: WireError }
)

/** One end of the connection between owner and thread: a worker, or a pair of functions in tests. */
export type ThreadPort<Out, In> = {
  post(message: Out, transfer: ArrayBuffer[]): void
  /** Replaces the listener. */
  listen(listener: (message: In) => void): void
}

/**
 * The view, and the buffer to transfer with it. A view of a part of a buffer is copied first, since a
 * transfer would take the rest away, and posting it would clone the rest.
 */
export function transferable<View extends Float32Array | Uint8Array>(
  view: View,
): { readonly view: View; readonly buffer: ArrayBuffer } {
  const { buffer } = view
  if (buffer instanceof ArrayBuffer && buffer.byteLength === view.byteLength) {
    return { view, buffer }
  }
  // slice() gives the same kind of view on a fresh, unshared buffer of just its size.
  const copy = view.slice() as View & { readonly buffer: ArrayBuffer }
  return { view: copy, buffer: copy.buffer }
}
