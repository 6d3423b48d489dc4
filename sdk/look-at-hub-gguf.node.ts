import { basename } from 'node:path'
import type { HubModel } from './find-on-hub.node.ts'
import type { HubOptions } from './hub/hub-options.ts'
import { createHubRanges } from './hub/read-hub-range.ts'
import { describeGguf, type DescribedGguf } from './import/gguf-source.node.ts'

/**
 * A hub's GGUF model by its headers, of which a few MB are fetched: what can't be cut is told before the download.
 * @throws CrowdError model-invalid, model-unsupported (the part is named), hub-unavailable, hub-denied, aborted
 */
export function lookAtHubGguf(
  hub: HubOptions,
  { listing, chosen }: HubModel,
  signal: AbortSignal,
): Promise<DescribedGguf> {
  return describeGguf(
    chosen.files.map((file) => ({
      file: basename(file.path),
      bytes: file.bytes,
      read: createHubRanges(hub, { listing, file, signal }),
    })),
  )
}
