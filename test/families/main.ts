import { parseArgs } from 'node:util'
import { compare, type FamilyRow } from './compare.ts'
import { listReferences, readReference } from './reference.ts'

/** `npm run families -- [--json] [--only NAME]`: every family against the implementation that isn't ours. */
const { values } = parseArgs({
  options: { json: { type: 'boolean', default: false }, only: { type: 'string' } },
})
const DTYPES = ['f32', 'f16', 'q8', 'q4'] as const

const rows: FamilyRow[] = []
for (const entry of await listReferences()) {
  if (values.only !== undefined && values.only !== entry.name) continue
  const reference = await readReference(entry)
  for (const dtype of DTYPES) {
    const row = await compare(reference, dtype)
    rows.push(row)
    if (!values.json) console.log(line(row))
  }
}
if (values.json) console.log(JSON.stringify(rows))
process.exitCode = rows.every(isRight) ? 0 : 1

function line({ family, source, dtype, ...row }: FamilyRow): string {
  const error = row.maxLogitError.toExponential(1)
  const agreement = `${Math.round(row.greedyAgreement * 100)} %`
  const split = row.splitEqualsWhole ? 'split = whole' : 'SPLIT DIFFERS'
  return `${family.padEnd(20)} ${source.padEnd(12)} ${dtype.padEnd(4)} ${error} ${agreement.padStart(6)}  ${split}`
}

/** What is kept as it was published must be the same; what is quantised must be the same whole and split. */
function isRight({ dtype, greedyAgreement, splitEqualsWhole }: FamilyRow): boolean {
  return splitEqualsWhole && (dtype !== 'f32' || greedyAgreement === 1)
}
