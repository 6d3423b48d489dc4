import type { Manifest } from '../sdk/core/model/manifest.ts'

/** A model that is cut and ready to be served: `manifest.json` and `pieces/` lie in `directory`. */
export type HostedModel = { readonly manifest: Manifest; readonly directory: string }
