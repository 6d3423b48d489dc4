import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { openChain, openModel } from '../../sdk/index.node.ts'
import { score, type Question } from './score.ts'

/** `npm run score -- [--json] [--model NAME]`: how many of the held-out questions the built-in model answers right. */
const { values } = parseArgs({
  options: {
    json: { type: 'boolean', default: false },
    model: { type: 'string', default: 'crowdtalk-2.6m' },
  },
})
const path = join(import.meta.dirname, '../../tools/builtin-model/questions.json')
// Our own committed file, in the shape that the type says.
const questions = JSON.parse(await readFile(path, 'utf8')) as Question[]
const data = await mkdtemp(join(tmpdir(), 'crowdinfer-score-'))
try {
  const model = await openModel(values.model, data)
  const chain = await openChain(model, 1)
  const result = await score(model, chain, questions)
  await chain.close()
  if (values.json) console.log(JSON.stringify(result))
  else {
    for (const { question, answer } of result.wrong)
      console.log(`wrong: ${question}\n       ${answer}`)
    console.log(`${result.right} of ${result.asked} right`)
  }
  process.exitCode = result.right >= 80 ? 0 : 1
} finally {
  await rm(data, { recursive: true, force: true })
}
