import { CrowdError } from '../errors.ts'
import type { Family } from './family.ts'

/**
 * A config.json in which absent fields have the family's defaults. null stays null: it is no absence.
 * @throws CrowdError model-invalid for a null that the family can't do with
 */
export function fillDefaults(
  config: Readonly<Record<string, unknown>>,
  { defaults, nullable = [] }: Pick<Family, 'defaults' | 'nullable'>,
): Record<string, unknown> {
  const given = Object.entries(config).filter(([, value]) => value !== undefined)
  const filled: Record<string, unknown> = { ...defaults, ...Object.fromEntries(given) }
  const broken = Object.keys(defaults).find(
    (name) => filled[name] === null && defaults[name] !== null && !nullable.includes(name),
  )
  if (broken === undefined) return filled
  throw new CrowdError('model-invalid', `config.json: "${broken}" is null; it must have a value.`)
}
