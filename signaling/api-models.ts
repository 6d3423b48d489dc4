import type { Manifest } from '../sdk/core/model/manifest.ts'
import { parseSamplingDefaults } from '../sdk/core/sampling/generation-config.ts'
import { readPiece } from '../sdk/import/model-store.node.ts'
import { parseJson } from '../sdk/import/safetensors-source.node.ts'
import type { Tokenizer } from '../sdk/index.node.ts'
import type { ApiModel } from './api/api-model.ts'
import type { HostedModel } from './hosted-model.ts'

export type ApiModels = {
  /** The same one for the same model. */
  of(model: HostedModel): ApiModel
}

/** What the API needs of models, read on first use and kept as long as the model is. */
export function createApiModels(deps: {
  openTokenizer(model: HostedModel): Promise<Tokenizer>
}): ApiModels {
  const opened = new WeakMap<HostedModel, ApiModel>()

  return {
    of(model) {
      const known = opened.get(model)
      if (known !== undefined) return known
      const made: ApiModel = {
        manifest: model.manifest,
        tokenizer: openOnce(() => deps.openTokenizer(model)),
        sampling: openOnce(async () => parseSamplingDefaults(await generationConfig(model))),
      }
      opened.set(model, made)
      return made
    },
  }
}

const GENERATION_CONFIG = 'generation_config.json'

/** undefined where there is none. @throws CrowdError model-invalid, piece-unavailable, piece-corrupt */
async function generationConfig({
  manifest,
  directory,
}: {
  readonly manifest: Manifest
  readonly directory: string
}): Promise<unknown> {
  const piece = manifest.files[GENERATION_CONFIG]
  if (piece === undefined) return undefined
  const text = new TextDecoder().decode(await readPiece(directory, piece.sha256))
  return parseJson(text, GENERATION_CONFIG)
}

/** Opens on first use and keeps what was opened; a failure is tried again. */
function openOnce<T>(open: () => Promise<T>): () => Promise<T> {
  let opened: Promise<T> | null = null
  return () => {
    if (opened !== null) return opened
    const opening = open()
    opened = opening
    opening.catch(() => {
      opened = null
    })
    return opening
  }
}
