import { CrowdError } from '../errors.ts'

/** Reads fields of untrusted JSON; every complaint names the file and the field. */
export type JsonFields = {
  readonly has: (field: string) => boolean
  readonly value: (field: string) => unknown
  readonly integer: (field: string, range: { min: number; max: number }) => number
  readonly number: (field: string) => number
  readonly boolean: (field: string) => boolean
  readonly string: (field: string) => string
  readonly array: (field: string) => readonly unknown[]
  readonly object: (field: string) => JsonFields
}

export function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

function isList(value: unknown): value is readonly unknown[] {
  return Array.isArray(value)
}

/** @throws CrowdError model-invalid where `json` is no object, and from each reader for a wrong field */
export function jsonFields(json: unknown, file: string): JsonFields {
  if (!isRecord(json)) throw new CrowdError('model-invalid', `${file} is not a JSON object.`)
  const value = (field: string): unknown => (Object.hasOwn(json, field) ? json[field] : undefined)
  const wrong = (field: string, want: string): CrowdError => {
    const got = value(field)
    const state = got === undefined ? 'is missing' : `is ${JSON.stringify(got)?.slice(0, 60)}`
    return new CrowdError('model-invalid', `${file}: "${field}" ${state}; it must be ${want}.`)
  }
  const number = (field: string): number => {
    const got = value(field)
    if (typeof got !== 'number' || !Number.isFinite(got)) throw wrong(field, 'a number')
    return got
  }
  return {
    has: (field) => value(field) !== undefined && value(field) !== null,
    value,
    number,
    integer: (field, { min, max }) => {
      const got = value(field)
      if (typeof got !== 'number' || !Number.isInteger(got) || got < min || got > max) {
        throw wrong(field, `a whole number from ${min} to ${max}`)
      }
      return got
    },
    boolean: (field) => {
      const got = value(field)
      if (typeof got !== 'boolean') throw wrong(field, 'true or false')
      return got
    },
    string: (field) => {
      const got = value(field)
      if (typeof got !== 'string') throw wrong(field, 'a text')
      return got
    },
    array: (field) => {
      const got = value(field)
      if (!isList(got)) throw wrong(field, 'a list')
      return got
    },
    object: (field) => {
      const got = value(field)
      if (!isRecord(got)) throw wrong(field, 'an object')
      return jsonFields(got, `${file}: "${field}"`)
    },
  }
}
