import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { bench } from './bench.ts'
import { benchWorkers, HOP_LIMIT_MS } from './bench-workers.ts'
import { writeBenchModel } from './bench-model.ts'

/** `npm run bench -- [--node] [--json] [--model NAME|DIR] [--tokens N] [--rounds N]`; `--node`: worker processes only */
const { values } = parseArgs({
  options: {
    json: { type: 'boolean', default: false },
    node: { type: 'boolean', default: false },
    model: { type: 'string' },
    tokens: { type: 'string', default: '32' },
    rounds: { type: 'string', default: '3' },
  },
})
const dataDir = await mkdtemp(join(tmpdir(), 'crowdinfer-bench-'))
try {
  const model = values.model ?? (await writeBenchModel(dataDir))
  const options = { model, dataDir, tokens: Number(values.tokens), rounds: Number(values.rounds) }
  const say = (line: string): void => {
    if (!values.json) console.log(line)
  }
  const rings = values.node
    ? await benchWorkers(options, say)
    : await bench({ ...options, stages: [1, 2, 3] }, say)
  for (const row of rings) {
    if (!('overHopMs' in row) || row.overHopMs <= HOP_LIMIT_MS) continue
    process.exitCode = 1
    say(`a hop costs ${row.overHopMs.toFixed(2)} ms, the limit is ${HOP_LIMIT_MS} ms`)
  }
  if (values.json) console.log(JSON.stringify({ rings }))
  else
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
} finally {
  await rm(dataDir, { recursive: true, force: true })
}
