import type { PeerId } from './core/ids.ts'

/** Who a tab is to the host: an id that others see and a token that proves it on reconnect. */
export type Identity = { readonly peer: PeerId; readonly token: string }

const KEY = 'crowdinfer-identity'
/** A reloading page frees its lock before this; a duplicated tab never does. */
const LOCK_WAIT_MS = 600

/**
 * The identity of this tab for one role: the same one after a reload, a new one in a duplicated tab (browsers
 * copy session storage into it). In an insecure context there are no locks, so a duplicate there fences
 * the original off, which the original is told.
 */
export async function tabIdentity(role: string): Promise<Identity> {
  const kept = readKept(role)
  if (kept !== null && (await claim(kept.peer))) return kept
  const made: Identity = { peer: randomHex(10) as PeerId, token: randomHex(16) }
  await claim(made.peer)
  try {
    sessionStorage.setItem(`${KEY}-${role}`, JSON.stringify(made))
  } catch {
    // Blocked storage: the identity lasts as long as the page, which is all that a reload would lose.
  }
  return made
}

function readKept(role: string): Identity | null {
  try {
    const kept: unknown = JSON.parse(sessionStorage.getItem(`${KEY}-${role}`) ?? 'null')
    if (typeof kept !== 'object' || kept === null || !('peer' in kept) || !('token' in kept))
      return null
    const { peer, token } = kept
    return typeof peer === 'string' && typeof token === 'string'
      ? { peer: peer as PeerId, token }
      : null
  } catch {
    return null
  }
}

/** Holds a lock named after the id for as long as the page lives. False when another tab holds it. */
async function claim(peer: PeerId): Promise<boolean> {
  // Absent in insecure contexts, whatever the type says.
  const locks = navigator.locks as LockManager | undefined
  if (locks === undefined) return true
  return await new Promise<boolean>((resolve) => {
    const forever = new Promise<never>(() => undefined)
    locks
      .request(`${KEY}-${peer}`, { signal: AbortSignal.timeout(LOCK_WAIT_MS) }, () => {
        resolve(true)
        return forever
      })
      .catch(() => resolve(false))
  })
}

/** `bytes` random bytes as hex; available in insecure contexts too. */
export function randomHex(bytes: number): string {
  return [...crypto.getRandomValues(new Uint8Array(bytes))]
    .map((byte) => byte.toString(16).padStart(2, '0'))
    .join('')
}
