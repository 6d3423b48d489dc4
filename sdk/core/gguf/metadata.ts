import { CrowdError } from '../errors.ts'

/** Reads fields of a GGUF file's metadata; every complaint names the file and the key. */
export type Metadata = {
  readonly has: (key: string) => boolean
  /** f32 values come back as the shortest decimal that is the same f32: 1e-5, not 9.9999997e-6. */
  readonly number: (key: string) => number
  readonly count: (key: string) => number
  readonly text: (key: string) => string
  readonly flag: (key: string) => boolean
  readonly numbers: (key: string) => readonly number[]
  readonly texts: (key: string) => readonly string[]
  /** The value itself, or undefined. */
  readonly value: (key: string) => unknown
  /** All keys that begin so. */
  readonly keys: (prefix: string) => readonly string[]
}

/** @param file name, for messages */
export function readMetadata(entries: Readonly<Record<string, unknown>>, file: string): Metadata {
  const value = (key: string): unknown => (Object.hasOwn(entries, key) ? entries[key] : undefined)
  const wrong = (key: string, want: string): CrowdError => {
    const state = value(key) === undefined ? 'is missing' : `is not ${want}`
    return new CrowdError('model-invalid', `${file}: the metadata entry ${key} ${state}.`)
  }
  const number = (key: string): number => {
    const got = value(key)
    const plain = typeof got === 'bigint' ? Number(got) : got
    if (typeof plain !== 'number' || !Number.isFinite(plain)) throw wrong(key, 'a number')
    return shortest(plain)
  }
  const list = <T>(key: string, is: (item: unknown) => item is T, want: string): readonly T[] => {
    const got: unknown = value(key)
    if (!Array.isArray(got) || !got.every(is)) throw wrong(key, want)
    return got
  }
  return {
    value,
    number,
    has: (key) => value(key) !== undefined,
    keys: (prefix) => Object.keys(entries).filter((key) => key.startsWith(prefix)),
    count: (key) => {
      const got = number(key)
      if (!Number.isSafeInteger(got) || got < 0) throw wrong(key, 'a count')
      return got
    },
    text: (key) => {
      const got = value(key)
      if (typeof got !== 'string') throw wrong(key, 'a text')
      return got
    },
    flag: (key) => {
      const got = value(key)
      if (typeof got !== 'boolean') throw wrong(key, 'true or false')
      return got
    },
    numbers: (key) =>
      list(key, (item): item is number => typeof item === 'number', 'a list of numbers'),
    texts: (key) =>
      list(key, (item): item is string => typeof item === 'string', 'a list of texts'),
  }
}

function shortest(value: number): number {
  if (Number.isInteger(value) || Math.fround(value) !== value) return value
  for (let digits = 1; digits < 9; digits++) {
    const rounded = Number(value.toPrecision(digits))
    if (Math.fround(rounded) === value) return rounded
  }
  return value
}
