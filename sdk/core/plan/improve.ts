import { blockCount } from '../model/block-range.ts'
import type { PlanDevice } from './device.ts'
import type { Placement } from './fill.ts'
import { fits, type PlanContext } from './fit.ts'
import { lapMs, stepMs } from './lap.ts'

/** Only a lap that is 25 % faster is worth moving devices: they download, and speeds are never known exactly. */
export const CLEAR_GAIN = 1.25

/** A change that brings less than this part of the lap isn't made on the way there either. */
const STEP_GAIN = 0.02

/**
 * A clearly faster chain over the same blocks, in which stages one after the other went to one of `loose`: the
 * lap falls by a faster device, a shorter way or fewer hops. Everybody else stays. null = nothing is worth it.
 */
export function improveChain(
  context: PlanContext,
  chain: readonly Placement[],
  loose: readonly PlanDevice[],
): readonly Placement[] | null {
  const limit = lapMs(context, chain) / CLEAR_GAIN
  let best = [...chain]
  let left = [...loose]
  for (;;) {
    const swap = bestSwap(context, best, left)
    if (swap === null) break
    best = swapped(best, swap)
    left = left.filter((device) => device !== swap.placement.device)
  }
  return lapMs(context, best) <= limit ? best : null
}

/** Stages `from` to `to`, the last one in, become one. */
type Swap = { readonly from: number; readonly to: number; readonly placement: Placement }

function bestSwap(
  context: PlanContext,
  chain: readonly Placement[],
  loose: readonly PlanDevice[],
): Swap | null {
  const sums = sumsOf(context, chain)
  let best: Swap | null = null
  let bestMs = sums.lap * (1 - STEP_GAIN)
  for (const device of loose) {
    for (const [from, first] of chain.entries()) {
      for (let to = from; to < chain.length; to++) {
        const last = chain[to]
        const stages = chain.length - (to - from)
        if (!last || stages < context.minStages) break
        const placement = { device, range: { start: first.range.start, end: last.range.end } }
        if (!fits(context, device, placement.range)) break
        const ms = lapAfter(context, { chain, sums }, { from, to, placement })
        if (ms >= bestMs) continue
        bestMs = ms
        best = { from, to, placement }
      }
    }
  }
  return best
}

type Sums = {
  /** Of the steps before each stage, and of the hops. */
  readonly steps: readonly number[]
  readonly hops: readonly number[]
  readonly lap: number
}

function sumsOf(context: PlanContext, chain: readonly Placement[]): Sums {
  const steps = [0]
  const hops = [0]
  for (const [index, { device, range }] of chain.entries()) {
    const next = chain[index + 1]
    steps.push((steps[index] ?? 0) + stepMs(context, device, range))
    hops.push((hops[index] ?? 0) + (next ? context.hopMs(device, next.device) : 0))
  }
  return { steps, hops, lap: lapMs(context, chain) }
}

function lapAfter(
  context: PlanContext,
  before: { readonly chain: readonly Placement[]; readonly sums: Sums },
  { from, to, placement }: Swap,
): number {
  const { chain, sums } = before
  const between = (list: readonly number[], start: number, end: number): number =>
    (list[end] ?? 0) - (list[start] ?? 0)
  const own = stepMs(context, placement.device, placement.range)
  if (to - from === chain.length - 1) return own
  const rest = between(sums.steps, 0, from) + between(sums.steps, to + 1, chain.length)
  // Hops that neither begin nor end at what is replaced.
  const kept =
    between(sums.hops, 0, Math.max(0, from - 1)) + between(sums.hops, to + 1, chain.length)
  const first = chain[0]
  const last = chain.at(-1)
  const previous = chain[from - 1] ?? last
  const next = chain[to + 1] ?? first
  if (!first || !last || !previous || !next) return Infinity
  const closing = from > 0 && to < chain.length - 1 ? context.hopMs(last.device, first.device) : 0
  const { device } = placement
  const around = context.hopMs(previous.device, device) + context.hopMs(device, next.device)
  return own + rest + kept + closing + around
}

function swapped(chain: readonly Placement[], { from, to, placement }: Swap): Placement[] {
  return [...chain.slice(0, from), placement, ...chain.slice(to + 1)]
}

/** The faster of two chains; `a` where they are even. */
export function fasterChain(
  context: PlanContext,
  a: readonly Placement[] | null,
  b: readonly Placement[] | null,
): readonly Placement[] | null {
  if (a === null || b === null) return a ?? b
  return lapMs(context, b) < lapMs(context, a) ? b : a
}

/** Whether a device that holds everything alone keeps up with a chain. */
export function keepsUp(
  context: PlanContext,
  device: PlanDevice,
  chain: readonly Placement[],
): boolean {
  const all = { start: 0, end: context.blockCount }
  return (
    chain.some(({ range }) => blockCount(range) < context.blockCount) &&
    fits(context, device, all) &&
    stepMs(context, device, all) <= lapMs(context, chain) * CLEAR_GAIN
  )
}
