/**
 * What tabs of this device began and did not end in peace. A browser kills a tab that takes too much memory without a
 * word to it; the crumb that it leaves tells the next load.
 */
export type CrashTrail = {
  /** By tab: what it is doing, for people. */
  readonly crumbs: Readonly<Record<string, string>>
  /** Tabs that were killed since one lived long enough. */
  readonly crashes: number
}

export const NO_TRAIL: CrashTrail = { crumbs: {}, crashes: 0 }
/** After so many a device does not begin again by itself. */
export const CRASHES_MAX = 2
/** A tab that serves this long in sight is no crash to come. */
export const SURVIVED_MS = 180_000
/** More are not kept: nobody has as many tabs at work. */
const CRUMBS_MAX = 16

/** What storage gave back; anything else than a trail is none. */
export function readTrail(text: string | null): CrashTrail {
  try {
    const kept: unknown = JSON.parse(text ?? 'null')
    if (typeof kept !== 'object' || kept === null) return NO_TRAIL
    const crashes = 'crashes' in kept && Number.isSafeInteger(kept.crashes) ? kept.crashes : 0
    const crumbs = 'crumbs' in kept && typeof kept.crumbs === 'object' ? kept.crumbs : {}
    const texts = Object.entries(crumbs ?? {}).flatMap(([tab, what]: [string, unknown]) =>
      typeof what === 'string' ? [[tab, what] as const] : [],
    )
    return {
      crumbs: Object.fromEntries(texts.slice(0, CRUMBS_MAX)),
      crashes: Math.max(0, Number(crashes)),
    }
  } catch {
    return NO_TRAIL
  }
}

export function begun(trail: CrashTrail, tab: string, what: string): CrashTrail {
  return { ...trail, crumbs: { ...trail.crumbs, [tab]: what } }
}

export function ended(trail: CrashTrail, tab: string): CrashTrail {
  return { ...trail, crumbs: without(trail.crumbs, (one) => one === tab) }
}

/** The tab lived long enough: the device can do what it does. */
export function survived(trail: CrashTrail, tab: string): CrashTrail {
  return { ...ended(trail, tab), crashes: 0 }
}

/**
 * Tabs that are no more and left a crumb were killed; several at once, with their browser, count once.
 * @returns what the last of them was doing; empty when none was killed
 */
export function judge(
  trail: CrashTrail,
  alive: readonly string[],
): { readonly trail: CrashTrail; readonly killed: string } {
  const dead = Object.keys(trail.crumbs).filter((tab) => !alive.includes(tab))
  const last = dead.at(-1)
  if (last === undefined) return { trail, killed: '' }
  const crumbs = without(trail.crumbs, (tab) => dead.includes(tab))
  return { trail: { crumbs, crashes: trail.crashes + 1 }, killed: trail.crumbs[last] ?? '' }
}

function without(
  crumbs: CrashTrail['crumbs'],
  isGone: (tab: string) => boolean,
): CrashTrail['crumbs'] {
  return Object.fromEntries(Object.entries(crumbs).filter(([tab]) => !isGone(tab)))
}
