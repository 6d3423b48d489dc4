/** What a stage has of a session when a route is opened, in rows from position 0 on. */
export type StageRows = {
  /** In its caches. */
  readonly cached: number
  /** Of its output that it kept and can send again; 0 = nothing. */
  readonly kept: number
}

/** Where a stage's part begins. */
export type StageStart = {
  /** Position of the first row that it computes. */
  readonly from: number
  /**
   * Position of the first row that the next stage gets. Below `from`: the rows between come from what is kept.
   * Above: the rows between are computed for the caches alone.
   */
  readonly forward: number
}

/**
 * The least work that brings every stage of a route to the row at `last`, behind which the next token is
 * chosen. A stage that lacks rows gets them from what the one before kept; where that isn't kept, the one before
 * computes them again, back to the tokens if need be. Nobody else recomputes anything but the last row.
 */
export function planResume(stages: readonly StageRows[], last: number): StageStart[] {
  let wanted = last
  return stages
    .toReversed()
    .map(({ cached, kept }, index) => {
      const own = Math.min(cached, last)
      const mustRepeat = wanted < own && kept < own
      const from = index > 0 && mustRepeat ? wanted : own
      const forward = index === 0 ? from : wanted
      wanted = from
      return { from, forward }
    })
    .reverse()
}
