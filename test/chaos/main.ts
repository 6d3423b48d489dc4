import { parseArgs } from 'node:util'
import { chaosRun, type ChaosRun } from '../sim/chaos-run.ts'
import { summarise } from './summary.ts'

/** `npm run chaos -- [--runs N] [--seed S] [--json] [--verbose]`: answers in the simulator, each disturbed while it is computed */
const { values } = parseArgs({
  options: {
    runs: { type: 'string', default: '200' },
    seed: { type: 'string', default: '1' },
    json: { type: 'boolean', default: false },
    real: { type: 'boolean', default: false },
    verbose: { type: 'boolean', default: false },
  },
})
if (values.real) {
  console.error(
    '--real: chaos on real workers and tabs is not there yet; without it, in the simulator',
  )
  process.exit(2)
}

const [count, seed] = [values.runs, values.seed].map((text) => {
  if (!/^\d{1,7}$/.test(text)) throw new Error(`--runs and --seed are whole numbers, not ${text}`)
  return Number(text)
}) as [number, number]

const runs: ChaosRun[] = []
for (let index = 0; index < count; index += 1) {
  const run = await chaosRun(seed + index)
  runs.push(run)
  if (values.verbose) console.error(JSON.stringify(run))
}
const summary = summarise(runs, seed)
if (values.json) console.log(JSON.stringify(summary))
else console.log(summary)
process.exitCode = summary.ok ? 0 : 1
