import { parseArgs } from 'node:util'
import { compareExport, listExports } from './compare-onnx.ts'
import { compare, type FamilyRow } from './compare.ts'
import { listReferences, readReference } from './reference.ts'
import { isRight } from './tolerance.ts'

/** `npm run families -- [--json] [--only NAME]`: every family against the implementation that isn't ours. */
const { values } = parseArgs({
  options: { json: { type: 'boolean', default: false }, only: { type: 'string' } },
})
const DTYPES = ['f32', 'f16', 'q8', 'q4'] as const

const rows: FamilyRow[] = []
function add(row: FamilyRow): void {
  rows.push(row)
  if (!values.json) console.log(line(row))
}
const isWanted = (name: string): boolean => values.only === undefined || values.only === name

for (const entry of (await listReferences()).filter(({ name }) => isWanted(name))) {
  const reference = await readReference(entry)
  for (const dtype of DTYPES) add(await compare(reference, dtype))
}
for (const name of (await listExports()).filter(isWanted)) add(await compareExport(name))
if (values.json) console.log(JSON.stringify(rows))
process.exitCode = rows.every(isRight) ? 0 : 1

function line({ family, source, dtype, ...row }: FamilyRow): string {
  const error = row.maxLogitError.toExponential(1)
  const agreement = `${Math.round(row.greedyAgreement * 100)} %`
  const split = row.splitEqualsWhole ? 'split = whole' : 'SPLIT DIFFERS'
  const verdict = isRight({ family, source, dtype, ...row }) ? '' : '  WRONG'
  return `${family.padEnd(20)} ${source.padEnd(12)} ${dtype.padEnd(4)} ${error} ${agreement.padStart(6)}  ${split}${verdict}`
}
