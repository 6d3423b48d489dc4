/** Raised whenever a message or a byte changes its meaning. Both ends must speak the same number. */
export const PROTOCOL = 3

/** A host that names it forwards bytes between the ends of a pair. */
export const RELAY_FEATURE = 'relay'

/** A client that names it fetches and gives pieces over links of their own. */
export const PIECES_FEATURE = 'pieces'

/** What this build can do beyond the number, in hello and welcome; each side uses only what the other lists. */
export const FEATURES: readonly string[] = [RELAY_FEATURE, PIECES_FEATURE]
