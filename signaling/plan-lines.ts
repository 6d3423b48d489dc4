import { describeRange, type BlockRange } from '../sdk/core/model/block-range.ts'
import type { PlanReview } from '../sdk/core/plan/review.ts'
import { cutLine, formatBytes, plain, table } from '../sdk/terminal/format.ts'

/** A plan and whose it is, for the terminal and `--json`. */
export type ShownPlan = Pick<PlanReview, 'lapMs' | 'stages' | 'advice'> & {
  readonly model: string
  readonly layerCount: number
  readonly missing: readonly BlockRange[]
  readonly devices: readonly {
    readonly name: string
    readonly provider: string
    readonly pledgeBytes: number
    /** What it holds now; null = nothing. */
    readonly now: BlockRange | null
    readonly range: BlockRange | null
    readonly keep: BlockRange | null
    readonly bytes: number
    readonly reason: string
  }[]
}

/** Who holds what and why, the lap that is to be expected, and what is missing. */
export function planLines(plan: ShownPlan, columns: number): string[] {
  const { layerCount, devices } = plan
  const words = (range: BlockRange | null): string =>
    range === null ? '–' : describeRange(range, layerCount)
  const rows = devices.map(({ name, provider, pledgeBytes, range, bytes, reason }) => [
    plain(name),
    provider,
    formatBytes(pledgeBytes),
    bytes === 0 ? '–' : formatBytes(bytes),
    words(range),
    plain(reason),
  ])
  const moves = devices.filter((one) => words(one.now) !== words(one.range) && one.now !== null)
  return [
    `${plain(plan.model)}, ${layerCount} layers`,
    '',
    ...(devices.length === 0
      ? ['No device is lent yet.']
      : table([['DEVICE', 'ON', 'LENDS', 'TAKES', 'HOLDS', 'WHY'], ...rows], columns)),
    ...moves.map(({ name, now, range }) =>
      cutLine(`${plain(name)} moves from ${words(now)} to ${words(range)}`, columns),
    ),
    '',
    outcome(plan),
  ]
}

function outcome({ lapMs, stages, missing, advice, layerCount }: ShownPlan): string {
  if (lapMs === null) {
    const what = missing.map((range) => describeRange(range, layerCount)).join('; ')
    return `Missing: ${what}. ${advice}.`
  }
  const hops = stages === 1 ? 'no hop' : `${stages} hops`
  return `Predicted: a lap of ${round(lapMs)} ms over ${hops}, ${round(1_000 / lapMs)} tokens a second for one answer.`
}

function round(value: number): string {
  return value >= 100 ? String(Math.round(value)) : value.toPrecision(2)
}
