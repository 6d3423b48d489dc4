import { createHash, timingSafeEqual } from 'node:crypto'
import { CrowdError } from '../sdk/core/errors.ts'
import type { PeerId } from '../sdk/core/ids.ts'
import type { ClientMessageOf } from '../sdk/protocol/client-to-server.ts'
import { PROTOCOL } from '../sdk/protocol/version.ts'

/** Identities remembered after their devices left, so that nobody else can take them up. */
const IDENTITIES_MAX = 4_096

/** Decides who is let in. Remembers which secret proves which identity. */
export type Admission = {
  /** @throws CrowdError protocol-mismatch, wrong-secret, bad-request (identity of another device) */
  check(hello: ClientMessageOf<'hello'>): void
  /** Whether this is the pool's secret; always true in an open pool. */
  knows(secret: string): boolean
}

/** `secret` null = open pool. */
export function createAdmission(secret: string | null): Admission {
  const proofs = new Map<PeerId, Buffer>()
  const knows = (given: string): boolean => secret === null || sameText(given, secret)
  return {
    knows,
    check(hello) {
      checkProtocol(hello.protocol)
      if (!knows(hello.secret))
        throw new CrowdError(
          'wrong-secret',
          hello.secret === ''
            ? 'this pool is private: open it with its invite link'
            : 'the secret of the invite link is not the one of this pool',
        )
      const proof = digest(hello.token)
      const known = proofs.get(hello.peer)
      if (known && !timingSafeEqual(known, proof))
        throw new CrowdError(
          'bad-request',
          'this device id belongs to another device: open the link in a new tab',
        )
      // Re-inserted, so that the ones seen last are forgotten last.
      proofs.delete(hello.peer)
      proofs.set(hello.peer, proof)
      const oldest = proofs.keys().next()
      if (proofs.size > IDENTITIES_MAX && !oldest.done) proofs.delete(oldest.value)
    },
  }
}

/** @throws CrowdError protocol-mismatch */
export function checkProtocol(theirs: number): void {
  if (theirs === PROTOCOL) return
  throw new CrowdError(
    'protocol-mismatch',
    `this page speaks protocol ${theirs} and the host ${PROTOCOL}: reload the page`,
  )
}

/** Constant time whatever the lengths: both sides are hashed first. */
function sameText(a: string, b: string): boolean {
  return timingSafeEqual(digest(a), digest(b))
}

function digest(text: string): Buffer {
  return createHash('sha256').update(text).digest()
}
