import { availableParallelism } from 'node:os'
import { performance } from 'node:perf_hooks'
import { createRandoms } from '../../sim/randoms.ts'
import type { Asker } from '../../support/asker.ts'
import { askRing } from './real-answer.ts'
import { openReference, type RealCase } from './real-question.ts'
import { openRealRing, type RealRing } from './real-ring.ts'

export type RealThroughput = {
  /** Processors of the machine, which host, askers and all stages share. */
  readonly cores: number
  readonly stages: number
  readonly answers: number
  /** Tokens per second of one answer alone, and of all answers together where so many run at once; medians. */
  readonly one: number
  readonly all: number
  readonly ratio: number
  /** Whether every answer was the unsplit model's. */
  readonly ok: boolean
}

const STAGES = 3
const AT_ONCE = 4
const ROUNDS = 5
const WHOLE_MS = 60_000

/** One answer, then four at once, in turns, on three worker processes of one stage each. */
export async function realThroughput(): Promise<RealThroughput> {
  const ring = await openRealRing({ workers: STAGES, tabs: 0, stages: STAGES })
  const askers: Asker[] = []
  try {
    const reference = await openReference(ring.model)
    const random = createRandoms(1).stream('throughput')
    const cases: RealCase[] = []
    for (let index = 0; index < AT_ONCE; index += 1) cases.push(await reference.someCase(random))
    await reference.close()
    await ring.untilWhole(WHOLE_MS)
    for (let index = 0; index < AT_ONCE; index += 1) askers.push(await ring.openAsker())
    const rates: { readonly one: number[]; readonly all: number[] } = { one: [], all: [] }
    let ok = true
    // The first round warms everything up.
    for (let round = 0; round <= ROUNDS; round += 1) {
      for (const [name, count] of [
        ['one', 1],
        ['all', AT_ONCE],
      ] as const) {
        const { perSecond, isRight } = await askAtOnce(ring, askers, cases.slice(0, count))
        ok &&= isRight
        if (round > 0) rates[name].push(perSecond)
      }
    }
    const [one, all] = [median(rates.one), median(rates.all)]
    const cores = availableParallelism()
    return { cores, stages: STAGES, answers: AT_ONCE, one, all, ratio: all / one, ok }
  } finally {
    for (const asker of askers) asker.close()
    await ring.close()
  }
}

async function askAtOnce(
  ring: RealRing,
  askers: readonly Asker[],
  cases: readonly RealCase[],
): Promise<{ readonly perSecond: number; readonly isRight: boolean }> {
  const begin = performance.now()
  const ends = await Promise.all(
    cases.map(async (wanted, index) => {
      const asker = askers[index]
      return asker === undefined ? null : await askRing(ring, asker, wanted).ended
    }),
  )
  const seconds = (performance.now() - begin) / 1_000
  const tokens = cases.reduce((sum, { expected }) => sum + expected.length, 0)
  return {
    perSecond: tokens / seconds,
    isRight: ends.every((end) => end?.outcome === 'identical'),
  }
}

function median(values: readonly number[]): number {
  return values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? NaN
}
