import type { Link, PairOrder } from './channel.ts'

/** Message of the error that tells that trying again is of no use. */
export const NO_CANDIDATES = 'no network candidates: WebRTC cannot connect from here'

/** One try at a direct link. */
export type PeerTry = {
  /**
   * Resolves when both lanes are open. Rejects when this try can't succeed any more.
   * @throws CrowdError link-closed; the try's own limit is the caller's
   */
  readonly link: Promise<Link>
  /** A signal of the other end's same try. */
  accept(signal: unknown): void
  /** Gives the try up; idempotent, and harmless once the link is open elsewhere. */
  close(): void
}

export type PeerTryDeps = {
  readonly order: PairOrder
  /** Called with every signal for the other end. */
  readonly onSignal: (signal: unknown) => void
}

/** Begins one try. Made by the adapter that knows WebRTC; the connector only climbs the ladder. */
export type MakePeerLink = (deps: PeerTryDeps) => PeerTry
