import { createClient } from './client/client.ts'
import type { Client } from './client/client-types.ts'
import { createTokenizer } from './client/tokenizer.hf.ts'
import type { RequestId } from './core/ids.ts'
import type { Manifest } from './core/model/manifest.ts'
import { randomHex } from './identity.browser.ts'
import { laterAwake } from './later-awake.ts'
import type { ModelSource } from './model-source.ts'
import type { Signaling } from './net/signaling.ts'
import type { Timers } from './net/timers.ts'
import { abortedError } from './storage/download.ts'

export type BrowserClientsDeps = {
  signaling: Signaling
  source: ModelSource
  timers: Timers
}

/** The asker role of a page, which has one client: that of the model that the host serves now. */
export type BrowserClients = {
  /**
   * The client for the manifest at a path of the host: the one there is when the model is still the same,
   * else a new one with that model's tokenizer, and the old one is closed.
   * @throws CrowdError piece-unavailable, model-invalid, aborted
   */
  open(manifestPath: string, signal: AbortSignal): Promise<Client>
}

export function createBrowserClients(deps: BrowserClientsDeps): BrowserClients {
  let current: { readonly revision: string; readonly client: Client } | null = null

  return {
    async open(manifestPath, signal) {
      const manifest = await deps.source.manifest(manifestPath, signal)
      // It covers the tokenizer's files, but not the name.
      const revision = `${manifest.id} ${manifest.revision}`
      if (current?.revision === revision) return current.client
      const client = await openClient(deps, manifest)
      if (signal.aborted) throw abortedError()
      current?.client.close()
      current = { revision, client }
      return client
    },
  }
}

async function openClient(deps: BrowserClientsDeps, manifest: Manifest): Promise<Client> {
  const { signaling, source, timers } = deps
  const [tokenizerJson, tokenizerConfig, chatTemplate] = await Promise.all([
    source.json(manifest, 'tokenizer.json'),
    source.json(manifest, 'tokenizer_config.json'),
    source.text(manifest, 'chat_template.jinja'),
  ])
  return createClient({
    signaling,
    tokenizer: createTokenizer({ tokenizerJson, tokenizerConfig, chatTemplate }),
    model: manifest.id,
    revision: manifest.revision,
    contextLength: manifest.contextLength,
    newRequestId: () => randomHex(8) as RequestId,
    later: laterAwake(
      (ms, task) => timers.after(ms, task),
      () => performance.now(),
    ),
  })
}
