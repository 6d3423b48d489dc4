import OpenAI from 'openai'
import type { Endpoint, Field } from '../../signaling/api/field.ts'
import { fieldsOf, type HonouredName } from '../../signaling/api/fields.ts'
import { BEHAVIOURS } from './behaviour-cases.ts'
import { HONOURED_CASES } from './honoured-cases.ts'
import { must, openKit, same, type Kit } from './kit.ts'

export type ConformanceRow = {
  readonly endpoint: Endpoint | 'all'
  readonly field: string
  /** What the table of fields promises; `behaviour` where the row is about no field. */
  readonly treatment: Field['treatment'] | 'behaviour'
  /** `refused`: with a 400 and the field's name, as promised. */
  readonly result: 'passed' | 'failed' | 'refused'
  /** What was seen instead; '' where nothing is wrong. */
  readonly detail: string
}

export type ConformanceResult = {
  readonly passed: number
  readonly failed: number
  readonly refused: number
  readonly rows: readonly ConformanceRow[]
}

/**
 * Runs the official client against a host with a real ring in this process, field by field as the table of
 * fields promises. `onRow` hears of each row as it is known.
 */
export async function conformance(
  onRow: (row: ConformanceRow) => void,
): Promise<ConformanceResult> {
  const kit = await openKit()
  const rows: ConformanceRow[] = []
  const add = (row: ConformanceRow): void => {
    rows.push(row)
    onRow(row)
  }
  try {
    for (const endpoint of ['chat', 'completions'] as const)
      for (const field of fieldsOf(endpoint)) add(await fieldRow(kit, endpoint, field))
    for (const { name, run } of BEHAVIOURS) {
      const detail = await complaint(() => run(kit))
      const result = detail === '' ? 'passed' : 'failed'
      add({ endpoint: 'all', field: name, treatment: 'behaviour', result, detail })
    }
  } finally {
    await kit.close()
  }
  const count = (result: ConformanceRow['result']): number =>
    rows.filter((row) => row.result === result).length
  return { passed: count('passed'), failed: count('failed'), refused: count('refused'), rows }
}

async function fieldRow(kit: Kit, endpoint: Endpoint, field: Field): Promise<ConformanceRow> {
  const { name, treatment } = field
  const detail = await complaint(() => checkField(kit, endpoint, field))
  const good = treatment === 'refused' ? 'refused' : 'passed'
  return { endpoint, field: name, treatment, result: detail === '' ? good : 'failed', detail }
}

async function checkField(kit: Kit, endpoint: Endpoint, field: Field): Promise<void> {
  const { name } = field
  switch (field.treatment) {
    case 'honoured': {
      // Cast: the table's honoured rows have these names.
      await HONOURED_CASES[name as HonouredName](kit, endpoint)
      const error = await refusal(kit, endpoint, { [name]: field.wrong })
      must(error.param?.startsWith(name) === true, `a wrong value: param is ${error.param}`)
      return
    }
    case 'harmless':
      same(await kit.ask(endpoint, { [name]: field.example }), await kit.ask(endpoint))
      return
    case 'refused': {
      same((await refusal(kit, endpoint, { [name]: field.example })).param, name)
      for (const neutral of [null, ...field.neutral]) await kit.ask(endpoint, { [name]: neutral })
    }
  }
}

async function refusal(
  kit: Kit,
  endpoint: Endpoint,
  over: Record<string, unknown>,
): Promise<InstanceType<typeof OpenAI.BadRequestError>> {
  try {
    await kit.ask(endpoint, over)
  } catch (thrown) {
    if (thrown instanceof OpenAI.BadRequestError) return thrown
    throw thrown
  }
  throw new Error(`${JSON.stringify(over)} was accepted`)
}

/** What went wrong, in words; '' when nothing did. */
async function complaint(task: () => Promise<void>): Promise<string> {
  try {
    await task()
    return ''
  } catch (thrown) {
    return thrown instanceof Error ? thrown.message : String(thrown)
  }
}
