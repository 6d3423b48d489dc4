import { readFile } from 'node:fs/promises'
import { isRecord } from '../../sdk/core/model/json-fields.ts'

/** What transformers makes of config.json files; tools/reference/make_defaults.py wrote it. */
export type ConfigFacts = {
  readonly families: Readonly<Record<string, FamilyFacts>>
  readonly rope: readonly RopeCase[]
  readonly windows: readonly WindowCase[]
  readonly pictures: readonly PictureCase[]
}

export type FamilyFacts = {
  /** Every field that may be left out differs from its default. */
  readonly config: Config
  /** By field, what holds where it is absent. */
  readonly absent: Config
  /** By field, what holds where it is null; "refused" where no model can be built or run. */
  readonly null: Config
}

export type Rotation = { readonly frequencies: readonly number[]; readonly factor: number }

export type RopeCase = {
  readonly name: string
  readonly config: Config
  /** By kind of layer, or `all`. */
  readonly layers: Readonly<Record<string, Rotation>>
}

export type WindowCase = {
  readonly name: string
  readonly config: Config
  /** Tokens that each layer sees, 0 = all, or "refused". */
  readonly windows: readonly number[] | 'refused'
}

/** A Gemma 3 with pictures as published, and its text part. */
export type PictureCase = {
  readonly name: string
  readonly config: Config
  readonly headCount: number
  readonly kvHeadCount: number
  readonly headSize: number
  readonly vocabSize: number
  readonly context: number
  readonly epsilon: number
  readonly scale: number
  readonly tied: boolean
  readonly eosTokenIds: number | readonly number[]
  readonly windows: readonly number[]
  /** Frequencies of the rotation in layers without and with a window. */
  readonly global: readonly number[]
  readonly local: readonly number[]
}

export type Config = Readonly<Record<string, unknown>>

export async function readConfigFacts(): Promise<ConfigFacts> {
  const file = new URL('../fixtures/reference/config-defaults.json', import.meta.url)
  const json: unknown = JSON.parse(await readFile(file, 'utf8'))
  if (!isRecord(json)) throw new Error('config-defaults.json is no object')
  // Cast: our own script writes the file, and the tests compare every field.
  return json as unknown as ConfigFacts
}
