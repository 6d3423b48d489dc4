import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { bench, verdicts, type BenchOptions } from './bench.ts'
import { benchPlan, PLAN_MAX_MS } from './bench-plan.ts'
import { benchWorkers, workerVerdicts } from './bench-workers.ts'
import { writeBenchModel } from './bench-model.ts'

/** `npm run bench -- [--node|--plan] [--json] [--model NAME|DIR] [--tokens N] [--rounds N]`; `--node`: worker processes only; `--plan`: the planner */
const { values } = parseArgs({
  options: {
    json: { type: 'boolean', default: false },
    node: { type: 'boolean', default: false },
    plan: { type: 'boolean', default: false },
    model: { type: 'string' },
    tokens: { type: 'string', default: '32' },
    rounds: { type: 'string', default: '3' },
  },
})
if (values.plan) {
  planned()
} else await rings()

async function rings(): Promise<void> {
  const dataDir = await mkdtemp(join(tmpdir(), 'crowdinfer-bench-'))
  try {
    const model = values.model ?? (await writeBenchModel(dataDir))
    const options = { model, dataDir, tokens: Number(values.tokens), rounds: Number(values.rounds) }
    const { rings, limits } = values.node ? await ofWorkers(options) : await ofTabs(options)
    if (limits.some(({ met }) => !met)) process.exitCode = 1
    if (values.json) console.log(JSON.stringify({ rings, limits }))
    else {
      console.table(
        rings.map((row) =>
          Object.fromEntries(
            Object.entries(row).map(([key, value]) => [
              key,
              typeof value === 'number' ? Number(value.toFixed(3)) : value,
            ]),
          ),
        ),
      )
      for (const { text } of limits) console.log(text)
    }
  } finally {
    await rm(dataDir, { recursive: true, force: true })
  }
}

function planned(): void {
  const rows = benchPlan([
    [64, 80],
    [256, 80],
  ])
  const met = rows.every(({ devices, cpuMs }) => devices > 64 || cpuMs <= PLAN_MAX_MS)
  if (!met) process.exitCode = 1
  if (values.json) console.log(JSON.stringify({ rows, met }))
  else {
    console.table(rows)
    console.log(
      `64 devices and 80 layers take at most ${PLAN_MAX_MS} ms: ${met ? 'met' : 'NOT met'}`,
    )
  }
}

function say(line: string): void {
  if (!values.json) console.log(line)
}

async function ofTabs(options: Omit<BenchOptions, 'stages'>) {
  const rings = await bench({ ...options, stages: [1, 2, 3] }, say)
  // Small models can't keep them: a hop costs them as much as their whole compute.
  return { rings, limits: values.model === undefined ? verdicts(rings) : [] }
}

async function ofWorkers(options: Omit<BenchOptions, 'stages'>) {
  const rings = await benchWorkers(options, say)
  return { rings, limits: workerVerdicts(rings) }
}
