import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { bench, verdicts } from './bench.ts'
import { writeBenchModel } from './bench-model.ts'

/** `npm run bench -- [--json] [--model NAME|DIR] [--tokens N] [--rounds N]` */
const { values } = parseArgs({
  options: {
    json: { type: 'boolean', default: false },
    model: { type: 'string' },
    tokens: { type: 'string', default: '32' },
    rounds: { type: 'string', default: '3' },
  },
})
const dataDir = await mkdtemp(join(tmpdir(), 'crowdinfer-bench-'))
try {
  const model = values.model ?? (await writeBenchModel(dataDir))
  const rings = await bench(
    {
      model,
      dataDir,
      stages: [1, 2, 3],
      tokens: Number(values.tokens),
      rounds: Number(values.rounds),
    },
    (line) => {
      if (!values.json) console.log(line)
    },
  )
  if (values.json) console.log(JSON.stringify({ rings, limits: verdicts(rings) }))
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
    for (const { text } of verdicts(rings)) console.log(text)
  }
} finally {
  await rm(dataDir, { recursive: true, force: true })
}
