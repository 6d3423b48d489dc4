/** How fast this stage is: counts steps and keeps a smoothed time of the decode steps. */
export type StepMeter = {
  /** `tokens` = rows of the step; only single-row steps say something about decoding. */
  add(tokens: number, computeMs: number): void
  readonly steps: number
  /** Decode steps: one for each lap that went through here. */
  readonly laps: number
  readonly tokens: number
  /** Smoothed time of a decode step, ms; null before the first. */
  readonly stepMs: number | null
  /** What a step takes is known before the first that counts. */
  expect(stepMs: number): void
  /** Another stage has another speed; what was counted stays. */
  forgetSpeed(): void
}

/** Weight of a new measurement: the last ten or so steps decide. */
const SMOOTHING = 0.2

export function createStepMeter(): StepMeter {
  let steps = 0
  let laps = 0
  let total = 0
  let stepMs: number | null = null
  return {
    add(tokens, computeMs) {
      steps += 1
      total += tokens
      if (tokens !== 1) return
      laps += 1
      stepMs = stepMs === null ? computeMs : stepMs + SMOOTHING * (computeMs - stepMs)
    },
    get steps() {
      return steps
    },
    get laps() {
      return laps
    },
    get tokens() {
      return total
    },
    get stepMs() {
      return stepMs
    },
    expect(ms) {
      stepMs = ms
    },
    forgetSpeed() {
      stepMs = null
    },
  }
}
