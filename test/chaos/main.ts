import { parseArgs } from 'node:util'
import { chaosRun, type ChaosRun } from '../sim/chaos-run.ts'
import { measurePetals, PETALS, STRATEGIES, type PetalsCell } from '../sim/petals.ts'
import { measureThroughput } from '../sim/throughput.ts'
import { realChaos } from './real/real-chaos.ts'
import { realThroughput } from './real/real-throughput.ts'
import { soak } from './real/soak.ts'
import { summarise } from './summary.ts'

/**
 * `npm run chaos -- [--runs N] [--seed S] [--json] [--verbose]`: answers in the simulator, each disturbed while it is
 * computed; with `--real` on a real ring, and with `--lan`
 * each of its devices has a network of its own (Linux, as root), so that ways between them are cut too. `--soak N`: so many answers there, undisturbed, and memory. `--throughput`: four answers at once against one; with `--real` on this machine's cores. `--petals`: speed by how often stages are lost.
 */
const { values } = parseArgs({
  options: {
    runs: { type: 'string', default: '200' },
    seed: { type: 'string', default: '1' },
    json: { type: 'boolean', default: false },
    verbose: { type: 'boolean', default: false },
    throughput: { type: 'boolean', default: false },
    petals: { type: 'boolean', default: false },
    minutes: { type: 'string', default: String(PETALS.minutes) },
    real: { type: 'boolean', default: false },
    lan: { type: 'boolean', default: false },
    soak: { type: 'string', default: '0' },
  },
})
const show = (result: unknown): void => console.log(values.json ? JSON.stringify(result) : result)

/** @throws Error naming the flag */
function numberOf(flag: 'runs' | 'seed' | 'minutes' | 'soak'): number {
  const text = values[flag]
  if (!/^\d{1,7}$/.test(text)) throw new Error(`--${flag} is a whole number, not ${text}`)
  return Number(text)
}

async function disturbed(): Promise<boolean> {
  const [count, seed] = [numberOf('runs'), numberOf('seed')]
  if (values.real) return await disturbedForReal(count, seed)
  const runs: ChaosRun[] = []
  for (let index = 0; index < count; index += 1) {
    const run = await chaosRun(seed + index)
    runs.push(run)
    if (values.verbose) console.error(JSON.stringify(run))
  }
  const summary = summarise(runs, seed)
  show(summary)
  return summary.ok
}

async function disturbedForReal(runs: number, seed: number): Promise<boolean> {
  const done = await realChaos({ runs, seed, isLan: values.lan }, (run) => {
    if (values.verbose) console.error(JSON.stringify(run))
  })
  const summary = summarise(done, seed)
  show(summary)
  return summary.ok
}

async function soaked(): Promise<boolean> {
  const result = await soak({ answers: numberOf('soak'), seed: numberOf('seed') }, (line) => {
    if (values.verbose) console.error(line)
  })
  show(result)
  return result.ok
}

async function throughput(): Promise<boolean> {
  if (values.real) {
    const result = await realThroughput()
    show(result)
    return result.ok
  }
  const result = await measureThroughput()
  show(result)
  return result.ratio >= 2.5
}

/** Also says how much of the speed without failures is left. */
async function petals(): Promise<boolean> {
  const setting = { ...PETALS, seed: numberOf('seed'), minutes: numberOf('minutes') }
  const rows: (PetalsCell & { readonly share: number })[] = []
  for (const strategy of STRATEGIES) {
    let full = 0
    for (const failure of [0, 1e-4, 1e-3, 1e-2]) {
      const cell = await measurePetals(strategy, failure, setting)
      if (failure === 0) full = cell.tokensPerSecond
      rows.push({ ...cell, share: cell.tokensPerSecond / full })
    }
  }
  if (values.json) show({ setting, rows })
  else {
    show(setting)
    console.table(rows)
  }
  const share = (failure: number): number =>
    rows.find((row) => row.strategy === 'repair' && row.failure === failure)?.share ?? 0
  return share(1e-3) >= 0.9 && share(1e-2) >= 0.5
}

async function main(): Promise<number> {
  if (numberOf('soak') > 0) return (await soaked()) ? 0 : 1
  const run = values.throughput ? throughput : values.petals ? petals : disturbed
  return (await run()) ? 0 : 1
}

process.exitCode = await main()
