import { parseArgs } from 'node:util'
import { failedSmoke, smoke, type SmokeOptions, type SmokeResult } from './smoke.ts'

/** `npm run smoke -- [--json] [--tabs N] [--workers N] [--provider auto|wasm|webgpu] [--model NAME|PATH] [--question TEXT] [--pledge MB] [--limit SECONDS] [--data DIR]` */
const json = process.argv.includes('--json')

/** @throws Error naming the flag */
function readOptions(): SmokeOptions {
  const { values } = parseArgs({
    options: {
      json: { type: 'boolean' },
      tabs: { type: 'string' },
      workers: { type: 'string', default: '0' },
      provider: { type: 'string', default: 'auto' },
      model: { type: 'string' },
      question: { type: 'string', default: 'What is a ring?' },
      pledge: { type: 'string', default: '64' },
      limit: { type: 'string', default: '60' },
      data: { type: 'string' },
    },
  })
  const { workers, provider, question, pledge, limit } = values
  // Who asks for workers alone need not say that there are no tabs.
  const tabs = values.tabs ?? (workers === '0' ? '3' : '0')
  checkNumbers({ tabs, workers }, /^\d\d?$/, 'from 0 to 99')
  checkNumbers({ pledge, limit }, /^[1-9]\d{0,4}$/, 'from 1 to 99999')
  if (Number(tabs) + Number(workers) === 0) throw new Error('a ring needs a tab or a worker')
  if (provider !== 'auto' && provider !== 'wasm' && provider !== 'webgpu') {
    throw new Error(`--provider is auto, wasm or webgpu, not ${provider}`)
  }
  // The software WebGPU adapter takes seconds for each shape of the larger model.
  const model = values.model ?? (provider === 'webgpu' ? 'crowdtalk-0.3m' : 'crowdtalk-2.6m')
  const sizes = { pledgeMb: Number(pledge), limitS: Number(limit) }
  const kept = values.data === undefined ? {} : { dataDir: values.data }
  return {
    tabs: Number(tabs),
    workers: Number(workers),
    provider,
    model,
    question,
    ...sizes,
    ...kept,
  }
}

/** @throws Error naming the flag */
function checkNumbers(flags: Readonly<Record<string, string>>, form: RegExp, range: string): void {
  for (const [flag, text] of Object.entries(flags)) {
    if (!form.test(text)) throw new Error(`--${flag} is a number ${range}, not ${text}`)
  }
}

function show(result: SmokeResult): void {
  console.table(
    [
      ...result.tabs.map((tab) => ({ kind: 'tab', ...tab })),
      ...result.workers.map((worker) => ({ kind: 'worker', ...worker })),
    ].map(({ blocks, ...device }) => ({ blocks: `[${blocks.join(', ')})`, ...device })),
  )
  console.log(`${result.tokens} tokens: ${result.text}`)
  console.log(
    `hop ${result.hopMs.toFixed(2)} ms, first token ${result.firstTokenMs.toFixed(0)} ms, ${result.tokensPerSecond.toFixed(1)} tokens/s`,
  )
  console.log(
    result.ok ? 'ok: identical to the unsplit model' : `not ok: ${result.problems.join('; ')}`,
  )
}

async function main(): Promise<SmokeResult> {
  try {
    return await smoke(readOptions(), (line) => {
      if (!json) console.log(line)
    })
  } catch (error) {
    return failedSmoke(error instanceof Error ? error.message : String(error))
  }
}

const result = await main()
if (json) console.log(JSON.stringify(result))
else show(result)
process.exitCode = result.ok ? 0 : 1
