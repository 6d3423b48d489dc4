/** Distinct string types per meaning, so that one id can't be passed where another is meant. */
type Brand<T, Name extends string> = T & { readonly '~brand': Name }

/** A device in the swarm, stamped by the server; survives reconnects of the same tab. */
export type PeerId = Brand<string, 'PeerId'>
/** One conversation turn that the ring computes. Unsigned 32-bit, so that it fits a frame header. */
export type SessionId = Brand<number, 'SessionId'>
/** A model as the host names it, e.g. `crowdtalk-2.6m`. */
export type ModelId = Brand<string, 'ModelId'>
/** An asker's own number for one request. */
export type RequestId = Brand<string, 'RequestId'>
/** The link between two peers, named by the server. */
export type PairId = Brand<string, 'PairId'>
/** SHA-256 of a piece in 64 lower-case hex digits. */
export type PieceHash = Brand<string, 'PieceHash'>
