import { parseArgs } from 'node:util'
import { conformance } from './conformance.ts'

/** `npm run conformance -- [--json]`: the official OpenAI client against a host, field by field. */
const { values } = parseArgs({ options: { json: { type: 'boolean', default: false } } })
const { json } = values

const result = await conformance((row) => {
  if (!json)
    console.log(
      [row.result.padEnd(8), row.treatment.padEnd(10), row.endpoint.padEnd(12), row.field].join(
        ' ',
      ) + (row.detail === '' ? '' : `: ${row.detail}`),
    )
})
if (json) console.log(JSON.stringify(result))
else
  console.log(
    `${result.passed} passed, ${result.failed} failed, ${result.refused} refused as documented`,
  )
process.exitCode = result.failed === 0 ? 0 : 1
