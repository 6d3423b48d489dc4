import type { LapTimings } from './lap-meter.ts'

/** Why an answer ended: an end token or stop string, its limit, somebody's wish, a failure. */
export type FinishReason = 'stop' | 'length' | 'cancelled' | 'error'

/** Where the time of a request went; means over its laps, times in ms. */
export type RequestTimings = LapTimings & {
  readonly promptTokens: number
  /** From the start order to the first token. */
  readonly firstTokenMs: number
}
