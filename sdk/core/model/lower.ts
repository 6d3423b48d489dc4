import { CrowdError } from '../errors.ts'
import type { Provider } from './provider.ts'

/** What `InferenceSession.create(model, { externalData })` takes. */
export type LoweredBlock = {
  readonly model: Uint8Array
  readonly externalData: { path: string; data: Uint8Array }[]
  /**
   * How the caches move. `delta`: inputs `past.key`/`past.value` [1, KV, P, D] with P at least the total
   * length (rows after the position are ignored), outputs `new.key`/`new.value` [1, KV, S, D], to be
   * written into the caller's buffer. `shared`: outputs `present.key`/`present.value` with the shape of
   * the past, meant to be the same gpu-buffer. `none`: a head.
   */
  readonly kv: 'delta' | 'shared' | 'none'
}

/**
 * Brings a block of the canonical dialect into the form that a provider runs well. The bytes of `data` may
 * be referenced by the result; drop both after the session was created.
 * @throws CrowdError model-invalid, model-unsupported
 */
export function lowerBlock(
  block: { readonly graph: Uint8Array; readonly data: Uint8Array },
  provider: Provider,
): LoweredBlock {
  throw new CrowdError('internal', `lowering for ${provider} of ${block.graph.length} bytes`)
}
