import type { ChaosRun } from '../sim/chaos-run.ts'
import { noticeLimitMs } from '../sim/disturbances.ts'

/** A disturbed answer, in the simulator or on a real ring. */
export type ChaosResult = Omit<ChaosRun, 'fingerprint'>

export type ChaosSummary = {
  readonly runs: number
  readonly seed: number
  readonly identical: number
  readonly honestEnds: number
  readonly wrong: number
  readonly hangs: number
  /** Runs after which something was left over. */
  readonly leaks: number
  /** Runs in which the host broke a rule. */
  readonly objections: number
  readonly noticedMs: Percentiles
  readonly nextTokenMs: Percentiles
  /** Losses that were noticed too late, or after which the next token came too late though a replica was there. */
  readonly late: number
  readonly withReplica: { readonly runs: number; readonly identical: number }
  /** Runs by what disturbed them. */
  readonly kinds: Readonly<Record<string, number>>
  /** Runs that should not have gone so, with what was wrong; each is had again by its seed. */
  readonly failed: readonly string[]
  readonly ok: boolean
}

/** ms; null where nothing was measured. */
export type Percentiles = { readonly p50: number | null; readonly p95: number | null }

/** With a replica every answer must be the unsplit model's; without one it may end with a reason. */
export function summarise(runs: readonly ChaosResult[], seed: number): ChaosSummary {
  const count = (list: readonly ChaosResult[], outcome: ChaosResult['outcome']): number =>
    list.filter((run) => run.outcome === outcome).length
  const replaceable = runs.filter((run) => run.hasReplica)
  const failed = runs.flatMap(whyFailed)
  return {
    runs: runs.length,
    seed,
    identical: count(runs, 'identical'),
    honestEnds: count(runs, 'honest'),
    wrong: count(runs, 'wrong'),
    hangs: count(runs, 'hang'),
    leaks: runs.filter((run) => run.leaks.length > 0).length,
    objections: runs.filter((run) => run.objections.length > 0).length,
    noticedMs: percentiles(runs.map((run) => run.noticedMs)),
    nextTokenMs: percentiles(runs.map((run) => run.nextTokenMs)),
    late: runs.filter(isLate).length,
    withReplica: { runs: replaceable.length, identical: count(replaceable, 'identical') },
    kinds: countKinds(runs),
    failed,
    ok: failed.length === 0,
  }
}

function countKinds(runs: readonly ChaosResult[]): Record<string, number> {
  const kinds: Record<string, number> = {}
  for (const { kind } of runs) kinds[kind] = (kinds[kind] ?? 0) + 1
  return kinds
}

/** With a second holder the answer goes on within this, ms; where it takes as long to notice anything, of noticing it. */
const NEXT_TOKEN_MS = 5_000

function isLate({ kind, noticedMs, nextTokenMs, hasReplica }: ChaosResult): boolean {
  if ((noticedMs ?? 0) > noticeLimitMs(kind)) return true
  const noticedAtMs = noticeLimitMs(kind)
  const fromMs = noticedAtMs < NEXT_TOKEN_MS ? 0 : noticedAtMs
  return hasReplica && (nextTokenMs ?? 0) > fromMs + NEXT_TOKEN_MS
}

function whyFailed(run: ChaosResult): string[] {
  const faults = [...run.leaks, ...run.objections]
  if (run.outcome === 'wrong' || run.outcome === 'hang') faults.unshift(run.outcome)
  if (run.hasReplica && run.outcome === 'honest') faults.unshift(`broke off: ${run.ending}`)
  if (faults.length === 0) return []
  return [`seed ${run.seed} (${run.kind}, ${run.stages} stages): ${faults.slice(0, 3).join('; ')}`]
}

export function percentiles(values: readonly (number | null)[]): Percentiles {
  const sorted = values.filter((value) => value !== null).sort((a, b) => a - b)
  const at = (share: number): number | null => {
    const value = sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))]
    return value === undefined ? null : Math.round(value)
  }
  return { p50: at(0.5), p95: at(0.95) }
}
