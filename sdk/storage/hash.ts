import { sha256 as hashInScript } from '@noble/hashes/sha2.js'
import type { PieceHash } from '../core/ids.ts'

const HASH_PATTERN = /^[0-9a-f]{64}$/

export type HashBytes = (bytes: Uint8Array) => Promise<PieceHash>

/** SHA-256 as 64 lower-case hex digits. Plain http pages have no crypto.subtle; a library does it there. */
export async function hashBytes(
  bytes: Uint8Array,
  subtle: SubtleCrypto | null = platformSubtle(),
): Promise<PieceHash> {
  const digest =
    subtle === null ? hashInScript(bytes) : await subtle.digest('SHA-256', withOwnBuffer(bytes))
  // What the brand stands for.
  return toHex(new Uint8Array(digest)) as PieceHash
}

/** The pattern is what the brand stands for. */
export function isPieceHash(text: string): text is PieceHash {
  return HASH_PATTERN.test(text)
}

function platformSubtle(): SubtleCrypto | null {
  // Typed as always there, but browsers leave it out where the page is not secure.
  const subtle = globalThis.crypto.subtle as SubtleCrypto | undefined
  return subtle ?? null
}

/** crypto.subtle refuses views of shared memory. */
function withOwnBuffer(bytes: Uint8Array): Uint8Array<ArrayBuffer> {
  const { buffer, byteOffset, byteLength } = bytes
  if (buffer instanceof ArrayBuffer) return new Uint8Array(buffer, byteOffset, byteLength)
  return new Uint8Array(bytes)
}

function toHex(bytes: Uint8Array): string {
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join('')
}
