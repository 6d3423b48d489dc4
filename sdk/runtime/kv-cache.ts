import type { Tensor } from 'onnxruntime-common'
import { KV_STEP_ROWS } from '../core/limits.ts'

export type KvShape = {
  readonly kvHeadCount: number
  readonly headSize: number
  /** Rows are never kept beyond this. */
  readonly contextLength: number
}

/**
 * Keys and values of one layer for one session, in our own buffers of [1, KV, capacity, D]. Rows from the
 * session's length on are rubbish and are ignored, so going back to an earlier position is free.
 */
export type KvCache = {
  /** Makes room for `total` rows; the first `kept` survive. @throws CrowdError out-of-memory */
  reserve(total: number, kept: number): void
  /** `past.key` and `past.value`, to be given to the layer's session. */
  feeds(): Record<string, Tensor>
  /** Outputs that the session must write in place; none where it returns the new rows. */
  fetches(): Record<string, Tensor>
  /** Takes over the new rows from the session's outputs. */
  append(outputs: Readonly<Record<string, Tensor>>, position: number, count: number): void
  dispose(): void
}

/** Capacity in rows for `total` rows: whole steps, but not beyond the context. */
export function capacityFor(total: number, contextLength: number): number {
  const stepped = Math.ceil(total / KV_STEP_ROWS) * KV_STEP_ROWS
  return Math.max(total, Math.min(stepped, contextLength))
}
