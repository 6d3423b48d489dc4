import { parseArgs } from 'node:util'
import { failedSmoke, smoke, type SmokeOptions, type SmokeResult } from './smoke.ts'

/** `npm run smoke -- [--json] [--tabs N] [--provider auto|wasm|webgpu] [--model NAME] [--question TEXT]` */
const json = process.argv.includes('--json')

/** @throws Error naming the flag */
function readOptions(): SmokeOptions {
  const { values } = parseArgs({
    options: {
      json: { type: 'boolean' },
      tabs: { type: 'string', default: '3' },
      provider: { type: 'string', default: 'auto' },
      model: { type: 'string' },
      question: { type: 'string', default: 'What is a ring?' },
    },
  })
  const { tabs, provider, question } = values
  if (!/^[1-9]\d?$/.test(tabs)) throw new Error(`--tabs is a number from 1 to 99, not ${tabs}`)
  if (provider !== 'auto' && provider !== 'wasm' && provider !== 'webgpu') {
    throw new Error(`--provider is auto, wasm or webgpu, not ${provider}`)
  }
  // The software WebGPU adapter takes seconds for each shape of the larger model.
  const model = values.model ?? (provider === 'webgpu' ? 'crowdtalk-0.3m' : 'crowdtalk-2.6m')
  return { tabs: Number(tabs), provider, model, question }
}

function show(result: SmokeResult): void {
  console.table(
    result.tabs.map(({ blocks, ...tab }) => ({ blocks: `[${blocks.join(', ')})`, ...tab })),
  )
  console.log(`${result.tokens} tokens: ${result.text}`)
  console.log(`hop ${result.hopMs.toFixed(2)} ms, first token ${result.firstTokenMs.toFixed(0)} ms`)
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
