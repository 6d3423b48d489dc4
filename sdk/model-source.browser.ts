import { CrowdError } from './core/errors.ts'
import { FETCH_STALL_MS, MANIFEST_MAX_BYTES } from './core/limits.ts'
import type { Manifest } from './core/model/manifest.ts'
import { parseManifest } from './core/model/parse-manifest.ts'
import { fetchPieces, pieceSource } from './storage/download.ts'
import { createMemoryShardStore } from './storage/memory-shard-store.ts'
import type { ShardStore } from './storage/shard-store.ts'
import type { FetchPieces } from './worker/stage-holder.ts'

/** A host's models over HTTP: manifests, and the pieces beside them. */
export type ModelSource = {
  /** The manifest at a path of the host. @throws CrowdError piece-unavailable, model-invalid */
  manifest(path: string): Promise<Manifest>
  /** A JSON file of the model, checked against its hash; undefined where the model has none of that name. */
  json(manifest: Manifest, name: string): Promise<unknown>
  /** Brings pieces of the manifest that was read last into a store. */
  fetchInto(
    store: ShardStore,
    request: { pieces: Parameters<FetchPieces>[0] } & Parameters<FetchPieces>[1],
  ): Promise<void>
}

export function createModelSource(hostUrl: string): ModelSource {
  let pieces = ''

  return {
    async manifest(path) {
      const url = new URL(path, hostUrl)
      pieces = new URL('pieces/', url).href
      return parseManifest(await fetchJson(url))
    },
    async json(manifest, name) {
      const piece = manifest.files[name]
      if (piece === undefined) return undefined
      const store = createMemoryShardStore()
      await fetchPieces({
        pieces: [piece],
        store,
        sources: [pieceSource('host', pieces)],
        fetch: boundFetch,
      })
      const bytes = await store.read(piece.sha256)
      if (bytes === null) throw new CrowdError('piece-unavailable', `${name} could not be read`)
      return JSON.parse(new TextDecoder().decode(bytes)) as unknown
    },
    async fetchInto(store, { pieces: wanted, signal, onProgress }) {
      await fetchPieces({
        pieces: wanted,
        store,
        sources: [pieceSource('host', pieces)],
        fetch: boundFetch,
        signal,
        onProgress: ({ storedBytes, fetchedBytes }) => onProgress(storedBytes, fetchedBytes),
      })
    },
  }
}

/** `fetch` refuses to be called as a method of something else. */
const boundFetch: typeof globalThis.fetch = (input, init) => fetch(input, init)

async function fetchJson(url: URL): Promise<unknown> {
  const wrong = (what: string, cause?: unknown) =>
    new CrowdError('piece-unavailable', `the model's description at ${url.pathname}: ${what}`, {
      cause,
    })
  let text: string
  try {
    const response = await fetch(url, {
      cache: 'no-cache',
      signal: AbortSignal.timeout(FETCH_STALL_MS),
    })
    if (!response.ok) throw wrong(`the host answered ${response.status}`)
    text = await response.text()
  } catch (thrown) {
    if (thrown instanceof CrowdError) throw thrown
    throw wrong(thrown instanceof Error ? thrown.message : String(thrown), thrown)
  }
  if (text.length > MANIFEST_MAX_BYTES) throw wrong('it is larger than any manifest')
  try {
    return JSON.parse(text)
  } catch (thrown) {
    throw wrong('it is not JSON', thrown)
  }
}
