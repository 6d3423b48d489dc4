import { CrowdError } from './core/errors.ts'
import { chooseFiles, type ChosenFiles } from './hub/choose-files.ts'
import { fileAddress, listHubFiles, type HubFile, type HubListing } from './hub/hub-files.ts'
import type { HubOptions } from './hub/hub-options.ts'
import { readHubText } from './hub/hub-text.ts'
import type { ModelRef } from './hub/model-ref.ts'
import type { AskedDtype } from './core/model/onnx/export-files.ts'
import type { ModelOrigin } from './import/known-model.ts'

/** A model on a hub, looked at but not downloaded. */
export type HubModel = {
  readonly listing: HubListing
  readonly chosen: ChosenFiles
  readonly origin: Extract<ModelOrigin, { kind: 'hub' }>
  /** config.json; null where there is none, as with GGUF files. */
  readonly config: unknown
}

/** A config has a few kB, the index of a large mixture a few MB. */
const TEXT_MAX_BYTES = 32 * 1024 * 1024

/**
 * Pins a model's commit and chooses its files.
 * @throws CrowdError hub-unavailable, hub-denied, model-not-found, bad-option, model-invalid, model-unsupported, aborted
 */
export async function findOnHub(
  hub: HubOptions,
  ref: ModelRef,
  wish: { readonly dtype: AskedDtype | null; readonly signal: AbortSignal },
): Promise<HubModel> {
  const { dtype, signal } = wish
  const { repo, revision, part } = ref
  const listing = await listHubFiles(hub, ref, signal)
  const readText = async ({ path }: HubFile): Promise<string> => {
    const asked = { repo, revision: listing.commit, path, hasToken: hub.token !== null }
    const address = fileAddress(hub, listing, path)
    const request = { asked, maxBytes: TEXT_MAX_BYTES, signal }
    return (await readHubText(hub, address, request)).text
  }
  const chosen = await chooseFiles(listing, { part, dtype }, readText)
  const configFile = chosen.files.find(({ path }) => path === 'config.json')
  const config = configFile === undefined ? null : parseJson(await readText(configFile), repo)
  const { commit } = listing
  const origin = { kind: 'hub', hub: hub.hubUrl.origin, repo, commit, revision, part } as const
  return { listing, chosen, origin, config }
}

function parseJson(text: string, repo: string): unknown {
  try {
    return JSON.parse(text) as unknown
  } catch (cause) {
    throw new CrowdError('model-invalid', `${repo}: config.json is not JSON.`, { cause })
  }
}
