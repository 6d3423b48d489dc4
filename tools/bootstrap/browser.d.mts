/** Flags for every Chromium that the tests start. */
export const BROWSER_FLAGS: readonly string[]
/** Path of a Chromium-family browser on this machine, or null. `CROWDINFER_BROWSER` names one by hand. */
export function findBrowser(): string | null
