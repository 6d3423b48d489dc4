import { CrowdError } from '../core/errors.ts'
import { FETCH_STALL_MS, PIECE_BYTES } from '../core/limits.ts'
import type { Piece } from '../core/model/manifest.ts'
import { hashBytes, type HashBytes } from './hash.ts'
import { readBody } from './read-body.ts'
import { createStallLimit, type Later } from './stall-limit.ts'

export type FetchPieceDeps = {
  readonly fetch: typeof globalThis.fetch
  readonly signal: AbortSignal
  /** Bytes as they come. */
  readonly onBytes: (count: number) => void
  readonly stallMs?: number | undefined
  readonly later?: Later | undefined
  readonly hash?: HashBytes | undefined
}

export type FetchedPiece =
  | { readonly kind: 'bytes'; readonly bytes: Uint8Array }
  | {
      readonly kind: 'failed'
      readonly code: 'piece-unavailable' | 'piece-corrupt'
      readonly reason: string
      /** Whether the same source may do better later. */
      readonly retry: boolean
      readonly retryAfterMs?: number
    }

type Failed = Extract<FetchedPiece, { kind: 'failed' }>

/** Files such as a tokenizer are one piece whatever their size; this only stops a lying manifest. */
export const SINGLE_FILE_MAX_BYTES = 8 * PIECE_BYTES

/**
 * One try for one piece. What is wrong with the answer is a value, since the next source may do better.
 * Nothing is allocated beyond the piece's own length.
 * @throws CrowdError aborted, model-invalid for a piece of impossible size
 */
export async function fetchPiece(
  piece: Piece,
  url: string,
  deps: FetchPieceDeps & { readonly fresh: boolean },
): Promise<FetchedPiece> {
  if (piece.bytes > SINGLE_FILE_MAX_BYTES) {
    throw new CrowdError('model-invalid', `a piece of ${piece.bytes} bytes is too large`)
  }
  // On its own: browsers refuse a fetch that is called as a method of something else.
  const { fetch } = deps
  const stall = createStallLimit(deps.signal, deps.stallMs ?? FETCH_STALL_MS, deps.later)
  try {
    const response = await fetch(url, {
      signal: stall.signal,
      ...(deps.fresh ? { cache: 'reload' as const } : {}),
    })
    const problem = headerProblem(piece, response)
    if (problem !== null) {
      await response.body?.cancel()
      return problem
    }
    const bytes = await wholeBody(piece, readBody(response.body, stall.signal), (count) => {
      stall.progress()
      deps.onBytes(count)
    })
    return bytes instanceof Uint8Array ? await checked(piece, bytes, deps.hash) : bytes
  } catch (thrown) {
    if (deps.signal.aborted) {
      throw new CrowdError('aborted', 'the download was stopped', { cause: thrown })
    }
    const reason = stall.isStalled() ? 'no bytes came for too long' : describe(thrown)
    return { kind: 'failed', code: 'piece-unavailable', reason, retry: true }
  } finally {
    stall.end()
  }
}

function headerProblem(piece: Piece, response: Response): Failed | null {
  if (!response.ok) return statusProblem(response)
  const type = response.headers.get('content-type') ?? ''
  if (type.startsWith('text/html')) {
    return corrupt('answered with a web page instead of the piece')
  }
  const length = response.headers.get('content-length')
  const isEncoded = response.headers.has('content-encoding')
  if (length !== null && !isEncoded && Number(length) !== piece.bytes) {
    return corrupt(`has ${length} bytes, expected ${piece.bytes}`)
  }
  return null
}

function statusProblem(response: Response): Failed {
  const { status } = response
  const isPassing = status === 408 || status === 425 || status === 429 || status >= 500
  const retryAfterMs = parseRetryAfter(response.headers.get('retry-after'))
  return {
    kind: 'failed',
    code: 'piece-unavailable',
    reason: `answered with status ${status}`,
    retry: isPassing,
    ...(retryAfterMs === null ? {} : { retryAfterMs }),
  }
}

/** Seconds, or a date relative to now. */
function parseRetryAfter(value: string | null): number | null {
  if (value === null) return null
  const seconds = Number(value)
  const ms = Number.isFinite(seconds) ? seconds * 1000 : Date.parse(value) - Date.now()
  return Number.isFinite(ms) && ms >= 0 ? ms : null
}

async function wholeBody(
  piece: Piece,
  body: AsyncIterable<Uint8Array>,
  onBytes: (count: number) => void,
): Promise<Uint8Array | Failed> {
  const bytes = new Uint8Array(piece.bytes)
  let offset = 0
  for await (const run of body) {
    if (offset + run.byteLength > bytes.byteLength) {
      return corrupt(`has more than the ${piece.bytes} bytes expected`)
    }
    bytes.set(run, offset)
    offset += run.byteLength
    onBytes(run.byteLength)
  }
  if (offset === bytes.byteLength) return bytes
  return corrupt(`ended after ${offset} of ${piece.bytes} bytes`)
}

async function checked(
  piece: Piece,
  bytes: Uint8Array,
  hashOf: HashBytes = hashBytes,
): Promise<FetchedPiece> {
  const hash = await hashOf(bytes)
  if (hash === piece.sha256) return { kind: 'bytes', bytes }
  return corrupt(`has hash ${hash}, expected ${piece.sha256}`)
}

function corrupt(reason: string): Failed {
  return { kind: 'failed', code: 'piece-corrupt', reason, retry: true }
}

function describe(thrown: unknown): string {
  return thrown instanceof Error ? thrown.message : String(thrown)
}
