import type { Endpoint, Field } from './field.ts'
import { HONOURED_FIELDS } from './honoured-fields.ts'
import { OTHER_FIELDS } from './other-fields.ts'

/**
 * Every request field of the two endpoints, and what becomes of it. API.md shows this table, the parser
 * reads honoured fields and refuses the refused ones by it, and tests go through it row by row.
 */
export const FIELDS = [...HONOURED_FIELDS, ...OTHER_FIELDS] as const satisfies readonly Field[]

/** The rows of one endpoint. */
export function fieldsOf(endpoint: Endpoint): readonly Field[] {
  const all: readonly Field[] = FIELDS
  return all.filter((field) => field.on.includes(endpoint))
}

/** A name that an honoured row of the table has. */
export type HonouredName = (typeof HONOURED_FIELDS)[number]['name']

/** The table for API.md. */
export function fieldsMarkdown(): string {
  const rows: readonly Field[] = FIELDS
  return [
    '| field | of | | |',
    '| --- | --- | --- | --- |',
    ...rows.map(
      (row) => `| \`${row.name}\` | ${row.on.join(', ')} | ${row.treatment} | ${noteOf(row)} |`,
    ),
  ].join('\n')
}

function noteOf(field: Field): string {
  if (field.treatment !== 'refused' || field.neutral.length === 0) return field.note
  const neutral = field.neutral.map((value) => `\`${JSON.stringify(value)}\``).join(', ')
  return `${field.note} ${neutral}: accepted.`
}
