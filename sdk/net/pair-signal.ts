import { CONNECT_TRIES } from '../core/limits.ts'

/** What the two ends of a pair tell each other while they connect; opaque to the server. */
export type PairSignal =
  /** A WebRTC description or candidate of direct try `try`. */
  | { readonly try: number; readonly signal: object }
  /** From the end that doesn't begin: its half of that try failed, so the other needn't wait for its limit. */
  | { readonly try: number; readonly failed: true }

/** Reads a signal's data; null when it is none of ours. */
export function readPairSignal(data: unknown): PairSignal | null {
  if (!isObject(data) || !('try' in data)) return null
  const number = data.try
  if (!isTryNumber(number)) return null
  if ('failed' in data && data.failed === true) return { try: number, failed: true }
  return 'signal' in data && isObject(data.signal) ? { try: number, signal: data.signal } : null
}

function isObject(value: unknown): value is object {
  return typeof value === 'object' && value !== null
}

function isTryNumber(value: unknown): value is number {
  return Number.isInteger(value) && Number(value) >= 1 && Number(value) <= CONNECT_TRIES
}
