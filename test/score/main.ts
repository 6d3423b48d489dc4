import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { QUESTIONS, RIGHT_MIN, score } from './score.ts'

/** `npm run score -- [--json] [--model NAME]`: how many of the held-out questions the built-in model answers right. */
const { values } = parseArgs({
  options: {
    json: { type: 'boolean', default: false },
    model: { type: 'string', default: 'crowdtalk-2.6m' },
  },
})
const data = await mkdtemp(join(tmpdir(), 'crowdinfer-score-'))
try {
  const result = await score(values.model, QUESTIONS, data)
  if (values.json) console.log(JSON.stringify(result))
  else {
    for (const { question, answer } of result.wrong)
      console.log(`wrong: ${question}\n       ${answer}`)
    console.log(`${result.right} of ${result.asked} right`)
  }
  process.exitCode = result.right >= RIGHT_MIN ? 0 : 1
} finally {
  await rm(data, { recursive: true, force: true })
}
