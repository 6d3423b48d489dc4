import { CONNECT_TRIES } from '../core/limits.ts'

/** What the two ends of a pair tell each other while they connect; opaque to the server. */
export type PairSignal =
  /** A WebRTC description or candidate of direct try `try`. */
  | { readonly try: number; readonly signal: object }
  /** From the end that doesn't begin: its half of that try failed, so the other needn't wait for its limit. */
  | { readonly try: number; readonly failed: true }

/** Reads a signal's data; null when it is none of ours. */
export function readPairSignal(data: unknown): PairSignal | null {
  if (typeof data !== 'object' || data === null || !('try' in data)) return null
  const number = data.try
  if (typeof number !== 'number' || !Number.isInteger(number)) return null
  if (number < 1 || number > CONNECT_TRIES) return null
  if ('failed' in data && data.failed === true) return { try: number, failed: true }
  if ('signal' in data && typeof data.signal === 'object' && data.signal !== null) {
    return { try: number, signal: data.signal }
  }
  return null
}
