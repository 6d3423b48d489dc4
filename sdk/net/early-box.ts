/** Things that came for a pair before this side knew of it: a bounded number of pairs, and of things for each. */
export type EarlyBox<Thing> = {
  put(pair: string, attempt: number, thing: Thing): void
  /** Takes what is kept for this attempt; older ones are dropped, newer ones stay. */
  take(pair: string, attempt: number): Thing[]
  clear(): void
}

export function createEarlyBox<Thing>(pairsMax: number, thingsMax: number): EarlyBox<Thing> {
  const kept = new Map<string, { attempt: number; thing: Thing }[]>()
  return {
    put(pair, attempt, thing) {
      const things = kept.get(pair) ?? []
      // Newest pair last, so that the oldest is the first to go.
      kept.delete(pair)
      kept.set(pair, things)
      if (things.length < thingsMax) things.push({ attempt, thing })
      for (const oldest of kept.keys()) {
        if (kept.size <= pairsMax) break
        kept.delete(oldest)
      }
    },
    take(pair, attempt) {
      const things = kept.get(pair) ?? []
      const newer = things.filter((entry) => entry.attempt > attempt)
      if (newer.length > 0) kept.set(pair, newer)
      else kept.delete(pair)
      return things.filter((entry) => entry.attempt === attempt).map((entry) => entry.thing)
    },
    clear: () => kept.clear(),
  }
}
