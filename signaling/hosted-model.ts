import type { Manifest } from '../sdk/core/model/manifest.ts'

/** A model that is cut and ready to be served: `manifest.json` and `pieces/` lie in `directory`. */
export type HostedModel = {
  /** As the library names it. */
  readonly name: string
  /** Comes with the product: shows the ring from two devices on. */
  readonly isBuiltin: boolean
  readonly manifest: Manifest
  readonly directory: string
}
