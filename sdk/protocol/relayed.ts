import * as v from 'valibot'
import type { PairId } from '../core/ids.ts'
import { CHUNK_BYTES } from '../core/limits.ts'
import { pairId } from './fields.ts'

/** What the event `relay` carries: the pair, and opaque bytes for its other end. */
export type Relayed = { readonly pair: PairId; readonly bytes: Uint8Array }

/** Checks the two arguments of a `relay` event; null when they are none. Binary is ArrayBuffer in a page, Buffer in Node. */
export function parseRelayed(pair: unknown, bytes: unknown): Relayed | null {
  const parsed = v.safeParse(pairId, pair)
  const view = asBytes(bytes)
  if (!parsed.success || view === null || view.length > CHUNK_BYTES) return null
  return { pair: parsed.output, bytes: view }
}

function asBytes(bytes: unknown): Uint8Array | null {
  if (bytes instanceof ArrayBuffer) return new Uint8Array(bytes)
  if (bytes instanceof Uint8Array) {
    return new Uint8Array(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  }
  return null
}
