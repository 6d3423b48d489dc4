import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import * as v from 'valibot'
import { CrowdError } from '../sdk/core/errors.ts'
import { packageRoot } from '../sdk/import/package-root.node.ts'

const whole = v.pipe(v.number(), v.integer(), v.minValue(1))

const entry = v.strictObject({
  /** On the public hub. */
  id: v.pipe(v.string(), v.regex(/^[\w.-]+\/[\w.-]+$/)),
  parameters: whole,
  /** Of a mixture of experts: what one token uses. */
  activeParameters: v.exactOptional(whole),
  layers: whole,
  hiddenSize: whole,
  kvHeads: whole,
  headSize: whole,
  vocabSize: whole,
  tied: v.boolean(),
  /** Tokens that it was made for. */
  context: whole,
  licence: v.pipe(v.string(), v.regex(/^[\w.-]+$/)),
  /** Its terms must be accepted on the hub first. */
  gated: v.boolean(),
  /** Weights of all parameters in each dtype, scales included. */
  bytes: v.strictObject({ q4: whole, q8: whole, f16: whole }),
})

const catalogue = v.strictObject({ format: v.literal(1), models: v.array(entry) })

/** A well-known model; data, kept in `public/catalogue.json`. */
export type CatalogueEntry = v.InferOutput<typeof entry>

/** @throws CrowdError model-invalid where the file is damaged */
export async function readCatalogue(
  path = join(packageRoot(), 'public', 'catalogue.json'),
): Promise<readonly CatalogueEntry[]> {
  try {
    return v.parse(catalogue, JSON.parse(await readFile(path, 'utf8'))).models
  } catch (cause) {
    throw new CrowdError('model-invalid', `${path} is damaged`, { cause })
  }
}
