import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { createRandoms } from '../../sim/randoms.ts'
import type { Asker } from '../../support/asker.ts'
import { askRing } from './real-answer.ts'
import { growthOf, type Growth } from './growth.ts'
import { openReference, type RealCase } from './real-question.ts'
import { openRealRing, type RealRing } from './real-ring.ts'

export type SoakResult = {
  readonly answers: number
  readonly identical: number
  readonly memory: readonly (Growth & { readonly of: string })[]
  /** Every answer was the unsplit model's, and nobody's memory grew. */
  readonly ok: boolean
}

const RING = { workers: 2, tabs: 1, stages: 3 } as const
const PEOPLE = 2
const WHOLE_MS = 120_000
/** Different questions, asked again and again. */
const CASES = 12
/** Share of the answers before memory is looked at: what is compiled and cached at first is no leak. */
const WARMING = 0.3
/** By what share memory may grow from the first third of the others to the last. */
const GROWTH_MAX = 0.1

/** Answers for two people at once on a ring of two workers and a tab; memory is read after every pair. */
export async function soak(
  options: { readonly answers: number; readonly seed: number },
  say: (line: string) => void,
): Promise<SoakResult> {
  const ring = await openRealRing(RING)
  const askers: Asker[] = []
  try {
    const cases = await someCases(ring, options.seed)
    await ring.untilWhole(WHOLE_MS)
    for (let person = 0; person < PEOPLE; person += 1) askers.push(await ring.openAsker())
    const samples = new Map<string, number[]>()
    let identical = 0
    for (let done = 0; done < options.answers; done += PEOPLE) {
      const pair = await Promise.all(
        askers.map(async (asker, person) => {
          const wanted = cases[(done + person) % cases.length]
          return wanted === undefined ? null : await askRing(ring, asker, wanted).ended
        }),
      )
      identical += pair.filter((end) => end?.outcome === 'identical').length
      const memory = await memoryOf(ring)
      const isWarm = done >= options.answers * WARMING
      for (const [name, bytes] of memory)
        if (isWarm) samples.set(name, [...(samples.get(name) ?? []), bytes])
      const taken = memory.map(([name, bytes]) => `${name} ${(bytes / 1e6).toFixed(2)} MB`)
      say(`${done + PEOPLE} answers, ${identical} identical; ${taken.join(', ')}`)
    }
    const answers = Math.ceil(options.answers / PEOPLE) * PEOPLE
    const memory = [...samples].map(([of, list]) => ({ of, ...growthOf(list) }))
    const isFlat = memory.every(({ growth }) => growth <= GROWTH_MAX)
    return { answers, identical, memory, ok: identical === answers && isFlat }
  } finally {
    for (const asker of askers) asker.close()
    await ring.close()
  }
}

async function someCases(ring: RealRing, seed: number): Promise<RealCase[]> {
  const random = createRandoms(seed).stream('soak')
  const reference = await openReference(ring.model)
  const cases: RealCase[] = []
  for (let index = 0; index < CASES; index += 1) cases.push(await reference.someCase(random))
  await reference.close()
  return cases
}

/** Bytes: a worker's resident memory, a tab's heap and the host's heap after a collection. */
async function memoryOf(ring: RealRing): Promise<[name: string, bytes: number][]> {
  const devices = ring.devices.map(async (device): Promise<[string, number]> => [
    device.name,
    await device.memoryBytes(),
  ])
  collectGarbage()
  return [...(await Promise.all(devices)), ['host', process.memoryUsage().heapUsed]]
}

/** Node offers it behind a flag only. */
function collectGarbage(): void {
  setFlagsFromString('--expose-gc')
  // Cast: V8's own function, of which the types know nothing.
  const collect = runInNewContext('gc') as () => void
  collect()
}
