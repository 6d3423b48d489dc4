import { CrowdError } from './core/errors.ts'
import { MANIFEST_MAX_BYTES } from './core/limits.ts'
import type { Manifest } from './core/model/manifest.ts'
import { parseManifest } from './core/model/parse-manifest.ts'
import { fetchText, type FetchTextDeps } from './fetch-text.ts'
import { fetchPieces, pieceSource, SYSTEM_TIMING } from './storage/download.ts'
import { createMemoryShardStore } from './storage/memory-shard-store.ts'
import type { ShardStore } from './storage/shard-store.ts'
import type { FetchPieces } from './worker/fetch-pieces.ts'

/** A host's models over HTTP: manifests, and the pieces beside them. */
export type ModelSource = {
  /**
   * The manifest at a path of the host; passing failures are tried again a few times.
   * @throws CrowdError piece-unavailable, model-invalid, aborted
   */
  manifest(path: string, signal?: AbortSignal): Promise<Manifest>
  /** A JSON file of the model, checked against its hash; undefined where the model has none of that name. */
  json(manifest: Manifest, name: string): Promise<unknown>
  /** The same for a file of text. */
  text(manifest: Manifest, name: string): Promise<string | undefined>
  /** Brings pieces of the manifest that was read last into a store. */
  fetchInto(
    store: ShardStore,
    request: {
      pieces: Parameters<FetchPieces>[0]
      mayEvict?: boolean
    } & Parameters<FetchPieces>[1],
  ): Promise<void>
}

/** `fetch` refuses to be called as a method of something else. */
const SYSTEM: FetchTextDeps = { fetch: (input, init) => fetch(input, init), timing: SYSTEM_TIMING }

export function createModelSource(hostUrl: string, deps: FetchTextDeps = SYSTEM): ModelSource {
  let pieces = ''

  async function text(manifest: Manifest, name: string): Promise<string | undefined> {
    const piece = manifest.files[name]
    if (piece === undefined) return undefined
    const store = createMemoryShardStore()
    const { fetch } = deps
    await fetchPieces({ pieces: [piece], store, sources: [pieceSource('host', pieces)], fetch })
    const bytes = await store.read(piece.sha256)
    if (bytes === null) throw new CrowdError('piece-unavailable', `${name} could not be read`)
    return new TextDecoder().decode(bytes)
  }

  return {
    async manifest(path, signal) {
      const url = new URL(path, hostUrl)
      const found = await fetchText(url, deps, {
        what: `the model's description at ${url.pathname}`,
        maxChars: MANIFEST_MAX_BYTES,
        ...(signal === undefined ? {} : { signal }),
      })
      const manifest = parseManifest(parseJson(found, url))
      pieces = new URL('pieces/', url).href
      return manifest
    },
    text,
    async json(manifest, name) {
      const found = await text(manifest, name)
      return found === undefined ? undefined : (JSON.parse(found) as unknown)
    },
    async fetchInto(store, { pieces: wanted, signal, onProgress, peers, mayEvict = false }) {
      await fetchPieces({
        pieces: wanted,
        store,
        sources: [pieceSource('host', pieces)],
        fetch: deps.fetch,
        signal,
        mayEvict,
        ...(peers === undefined ? {} : { peers }),
        onProgress: ({ storedBytes, fetchedBytes, peerBytes }) =>
          onProgress(storedBytes, fetchedBytes, peerBytes),
      })
    },
  }
}

function parseJson(text: string, url: URL): unknown {
  try {
    return JSON.parse(text)
  } catch (thrown) {
    throw new CrowdError('piece-unavailable', `${url.pathname} is not JSON`, { cause: thrown })
  }
}
