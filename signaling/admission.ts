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
  /**
   * The device has joined: its identity is its own from now on, and is not forgotten before the returned
   * function is called. To be called only after the join succeeded, so that nobody fills the memory from outside.
   */
  seat(hello: Pick<ClientMessageOf<'hello'>, 'peer' | 'token'>): () => void
  /** Whether this is the pool's secret; always true in an open pool. */
  knows(secret: string): boolean
}

/** `secret` null = open pool. */
export function createAdmission(secret: string | null): Admission {
  // Those seen last are at the end.
  const known = new Map<PeerId, { readonly proof: Buffer; seats: number }>()
  const knows = (given: string): boolean => secret === null || sameText(given, secret)

  function seat(hello: Pick<ClientMessageOf<'hello'>, 'peer' | 'token'>): () => void {
    const entry = known.get(hello.peer) ?? { proof: digest(hello.token), seats: 0 }
    entry.seats += 1
    touch(hello.peer, entry)
    return () => {
      entry.seats -= 1
      touch(hello.peer, entry)
    }
  }

  function touch(peer: PeerId, entry: { readonly proof: Buffer; seats: number }): void {
    known.delete(peer)
    known.set(peer, entry)
    if (known.size <= IDENTITIES_MAX) return
    for (const [oldest, { seats }] of known) {
      if (seats > 0) continue
      known.delete(oldest)
      return
    }
  }

  return {
    knows,
    seat,
    check(hello) {
      checkProtocol(hello.protocol)
      if (!knows(hello.secret))
        throw new CrowdError(
          'wrong-secret',
          hello.secret === ''
            ? 'this pool is private: open it with its invite link'
            : 'the secret of the invite link is not the one of this pool',
        )
      const entry = known.get(hello.peer)
      if (entry && !timingSafeEqual(entry.proof, digest(hello.token)))
        throw new CrowdError(
          'bad-request',
          'this device id belongs to another device: open the link in a new tab',
        )
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
