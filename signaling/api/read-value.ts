import { FieldError } from './api-error.ts'

/** Reads one value of a request, or refuses it with the field's name. The value is never null or undefined. */
export type Reader<T> = (value: unknown, param: string) => T

export function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** @returns never: throws FieldError */
export function refuse(param: string, wanted: string, given: unknown): never {
  throw new FieldError(param, `${param} must be ${wanted}, not ${describe(given)}`)
}

/** Short, whatever came: it goes into an error message. */
function describe(value: unknown): string {
  const text = JSON.stringify(value) ?? typeof value
  return text.length <= 40 ? text : `${text.slice(0, 39)}…`
}

export function numberFrom(least: number, most: number): Reader<number> {
  return (value, param) =>
    typeof value === 'number' && value >= least && value <= most
      ? value
      : refuse(param, `a number from ${least} to ${most}`, value)
}

export function wholeFrom(least: number, most: number): Reader<number> {
  return (value, param) =>
    typeof value === 'number' && Number.isSafeInteger(value) && value >= least && value <= most
      ? value
      : refuse(param, `a whole number from ${least} to ${most}`, value)
}

export const readBoolean: Reader<boolean> = (value, param) =>
  typeof value === 'boolean' ? value : refuse(param, 'true or false', value)

export const readText: Reader<string> = (value, param) =>
  typeof value === 'string' ? value : refuse(param, 'a text', value)
