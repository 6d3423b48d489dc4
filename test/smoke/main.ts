import { parseArgs } from 'node:util'
import { failedSmoke, smoke, type SmokeOptions } from './smoke.ts'

/** `npm run smoke -- [--json] [--tabs N] [--provider auto|wasm|webgpu] [--model NAME] [--question TEXT]` */
const { values } = parseArgs({
  options: {
    json: { type: 'boolean', default: false },
    tabs: { type: 'string', default: '3' },
    provider: { type: 'string', default: 'auto' },
    model: { type: 'string' },
    question: { type: 'string', default: 'What is a ring?' },
  },
})

function parseProvider(text: string): SmokeOptions['provider'] {
  if (text === 'auto' || text === 'wasm' || text === 'webgpu') return text
  throw new Error(`--provider is auto, wasm or webgpu, not ${text}`)
}

function parseTabs(text: string): number {
  if (/^[1-9]\d?$/.test(text)) return Number(text)
  throw new Error(`--tabs is a number from 1 to 99, not ${text}`)
}

try {
  const provider = parseProvider(values.provider)
  const result = await smoke(
    {
      tabs: parseTabs(values.tabs),
      provider,
      // The software WebGPU adapter takes seconds for each shape of the larger model.
      model: values.model ?? (provider === 'webgpu' ? 'crowdtalk-0.3m' : 'crowdtalk-2.6m'),
      question: values.question,
    },
    (line) => {
      if (!values.json) console.log(line)
    },
  )
  if (values.json) console.log(JSON.stringify(result))
  else {
    console.table(
      result.tabs.map(({ blocks, ...tab }) => ({ blocks: `[${blocks.join(', ')})`, ...tab })),
    )
    console.log(`${result.tokens} tokens: ${result.text}`)
    console.log(
      `hop ${result.hopMs.toFixed(2)} ms, first token ${result.firstTokenMs.toFixed(0)} ms`,
    )
    console.log(
      result.ok ? 'ok: identical to the unsplit model' : `not ok: ${result.problems.join('; ')}`,
    )
  }
  process.exitCode = result.ok ? 0 : 1
} catch (error) {
  const message = error instanceof Error ? error.message : String(error)
  if (values.json) console.log(JSON.stringify(failedSmoke(message)))
  else console.error(`smoke: ${message}`)
  process.exitCode = 1
}
