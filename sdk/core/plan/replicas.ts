import type { PlanDevice } from './device.ts'
import { fits, type PlanContext } from './fit.ts'
import type { Placement } from './fill.ts'
import { keepsUp } from './improve.ts'
import { stepMs } from './lap.ts'
import { strength, type Span } from './spans.ts'

/**
 * Holders of one span that a swarm can use: more answers at once than the host lets run, and some to lose. Who
 * comes after them only keeps the pieces.
 */
const COPIES_MAX = 8

type Replicated = { readonly placements: readonly Placement[]; readonly spans: readonly Span[] }

/**
 * Gives devices that no gap needs to the weakest span that they can hold: fewest visible holders, then what the
 * device has stored, then the slowest. One that holds the whole model and keeps up with the chain takes it whole, so that it
 * can answer alone. `others`: spans of further chains, for devices that no span of the first one fits.
 */
export function placeReplicas(
  context: PlanContext,
  input: {
    readonly chain: readonly Placement[] | null
    readonly spans: readonly Span[]
    readonly others: readonly Span[]
    readonly free: readonly PlanDevice[]
  },
): Replicated {
  let spans = [...input.spans]
  let others = [...input.others]
  const placements: Placement[] = []
  const order = [...input.free].sort(
    (a, b) => Number(a.hidden) - Number(b.hidden) || context.msPerLayer(a) - context.msPerLayer(b),
  )
  for (const device of order) {
    const whole = wholeSpan(context, input.chain, device)
    if (whole !== null && ![...spans, ...others].some((span) => isWhole(context, span)))
      others = [...others, whole]
    const span =
      (whole &&
        weakestFor(
          context,
          others.filter((one) => isWhole(context, one)),
          device,
        )) ??
      weakestFor(context, spans, device) ??
      weakestFor(context, others, device)
    if (span === null) continue
    placements.push({ device, range: span.range })
    const joined = (other: Span): Span =>
      other === span ? { range: span.range, holders: [...span.holders, device] } : other
    spans = spans.map(joined)
    others = others.map(joined)
  }
  return { placements, spans }
}

function wholeSpan(
  context: PlanContext,
  chain: readonly Placement[] | null,
  device: PlanDevice,
): Span | null {
  if (chain === null || device.hidden || !keepsUp(context, device, chain)) return null
  return { range: { start: 0, end: context.blockCount }, holders: [] }
}

function isWhole(context: PlanContext, { range }: Span): boolean {
  return range.start === 0 && range.end === context.blockCount
}

/**
 * Moves one replica from the strongest span to a span that has at least two holders fewer; smaller
 * differences aren't worth a download. Only a device that isn't needed where it is may move.
 */
export function moveReplica(
  context: PlanContext,
  spans: readonly Span[],
  mayMove: (device: PlanDevice) => boolean,
): Placement | null {
  const strongest = [...spans].sort((a, b) => strength(b) - strength(a))[0]
  if (!strongest) return null
  for (const device of strongest.holders) {
    if (!mayMove(device)) continue
    if (device.ready && !strongest.holders.some((other) => other !== device && other.ready))
      continue
    const others = spans.filter((span) => strength(span) + 2 <= strength(strongest))
    const target = weakestFor(context, others, device)
    if (target) return { device, range: target.range }
  }
  return null
}

function weakestFor(context: PlanContext, spans: readonly Span[], device: PlanDevice): Span | null {
  const possible = spans.filter(
    (span) => strength(span) < COPIES_MAX && fits(context, device, span.range),
  )
  const cached = (span: Span): number => context.stored.bytes(device, span.range)
  return (
    [...possible].sort(
      (a, b) =>
        strength(a) - strength(b) ||
        cached(b) - cached(a) ||
        fastestMs(context, b) - fastestMs(context, a) ||
        a.range.start - b.range.start,
    )[0] ?? null
  )
}

/** The step of its fastest holder, ms: the slower, the more the span needs another one. */
export function fastestMs(context: PlanContext, { range, holders }: Span): number {
  return Math.min(...holders.map((device) => stepMs(context, device, range)))
}
