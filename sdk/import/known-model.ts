import { CrowdError } from '../core/errors.ts'
import { jsonFields, type JsonFields } from '../core/model/json-fields.ts'

/** Where an added model came from. */
export type ModelOrigin =
  | {
      readonly kind: 'hub'
      /** Origin of the hub, e.g. `https://huggingface.co`. */
      readonly hub: string
      readonly repo: string
      readonly commit: string
      /** As it was asked for; null = the default branch. */
      readonly revision: string | null
      readonly part: string | null
    }
  | { readonly kind: 'path'; readonly path: string }

/** What a person added under a name, beside the manifest. */
export type KnownModel = {
  readonly name: string
  readonly origin: ModelOrigin
  /** As it was asked for; null = what suits the source. */
  readonly askedDtype: string | null
  readonly askedContext: number | null
  /** ISO 8601. */
  readonly addedAt: string
  /** Experts of a mixture, 0 = none; null = not known. */
  readonly experts: number | null
  /** Tokens; 0 = none; null = not known. */
  readonly slidingWindow: number | null
  /** The kept download, or null. */
  readonly keptSource: string | null
}

/** Becomes a folder's name on every system, and the model's id. */
export function isModelName(text: string): boolean {
  return /^[A-Za-z0-9_][\w.-]{0,79}$/.test(text)
}

/** @throws CrowdError model-invalid (the field is named) */
export function parseKnownModel(json: unknown, name: string): KnownModel {
  const fields = jsonFields(json, 'model.json')
  fields.integer('format', { min: 1, max: 1 })
  return {
    name,
    origin: parseOrigin(fields.object('origin')),
    askedDtype: optional(fields, 'askedDtype'),
    askedContext: optionalNumber(fields, 'askedContext'),
    addedAt: fields.string('addedAt'),
    experts: optionalNumber(fields, 'experts'),
    slidingWindow: optionalNumber(fields, 'slidingWindow'),
    keptSource: optional(fields, 'keptSource'),
  }
}

/** The text of `model.json`; the folder has the name. */
export function formatKnownModel(known: KnownModel): string {
  return `${JSON.stringify({ format: 1, ...known, name: undefined }, null, 2)}\n`
}

function parseOrigin(fields: JsonFields): ModelOrigin {
  const kind = fields.string('kind')
  if (kind === 'path') return { kind, path: fields.string('path') }
  if (kind !== 'hub') {
    throw new CrowdError('model-invalid', `model.json: the origin "${kind}" is not known.`)
  }
  return {
    kind,
    hub: fields.string('hub'),
    repo: fields.string('repo'),
    commit: fields.string('commit'),
    revision: optional(fields, 'revision'),
    part: optional(fields, 'part'),
  }
}

function optional(fields: JsonFields, field: string): string | null {
  return fields.has(field) ? fields.string(field) : null
}

function optionalNumber(fields: JsonFields, field: string): number | null {
  return fields.has(field) ? fields.integer(field, { min: 0, max: Number.MAX_SAFE_INTEGER }) : null
}

/** `org/name@abcdef1:part`, or the path. */
export function describeOrigin(origin: ModelOrigin): string {
  if (origin.kind === 'path') return origin.path
  const part = origin.part === null ? '' : `:${origin.part}`
  return `${origin.repo}@${origin.commit.slice(0, 8)}${part}`
}
