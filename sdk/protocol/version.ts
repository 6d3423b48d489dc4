/** Raised whenever a message or a byte changes its meaning. Both ends must speak the same number. */
export const PROTOCOL = 1

/** What this build can do beyond the basics; each side uses only what both list. */
export const FEATURES = ['relay', 'sampling-v1'] as const
