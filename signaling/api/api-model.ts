import type { Manifest } from '../../sdk/core/model/manifest.ts'
import type { SamplingDefaults } from '../../sdk/core/sampling/generation-config.ts'
import type { Tokenizer } from '../../sdk/index.node.ts'

/** A model as the API asks it. */
export type ApiModel = {
  readonly manifest: Manifest
  /** Opened on first use. @throws CrowdError model-invalid, model-unsupported */
  tokenizer(): Promise<Tokenizer>
  /** What counts where a request says nothing. @throws CrowdError model-invalid, piece-unavailable, piece-corrupt */
  sampling(): Promise<SamplingDefaults>
}
