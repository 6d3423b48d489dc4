import type { HostedModel } from './hosted-model.ts'

/** A model that the host could serve. */
export type KnownModel = {
  readonly name: string
  readonly isBuiltin: boolean
  /** null where it can't be read. */
  readonly size: ModelSize | null
  /** Why it can't be served; '' where nothing speaks against it. */
  readonly problem: string
}

export type ModelSize = {
  readonly layerCount: number
  /** Tokens, prompt and answer together. */
  readonly contextLength: number
  /** Of the weights, about what all devices together download. */
  readonly bytes: number
}

/** PORT. The models that this host knows. */
export interface ModelLibrary {
  /** By name, each once. Models that can't be served are there too, with the reason. */
  list(): Promise<readonly KnownModel[]>
  /**
   * A model of the list, ready to be served: what isn't cut yet is cut first.
   * @param onStep told in words what is being done
   * @throws CrowdError model-not-found, model-invalid, model-unsupported, storage-failed
   */
  open(name: string, onStep: (step: string) => void): Promise<HostedModel>
}
