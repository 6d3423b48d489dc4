import { createClient } from './client/client.ts'
import type { Client } from './client/client-types.ts'
import { createTokenizer } from './client/tokenizer.hf.ts'
import type { RequestId } from './core/ids.ts'
import { randomHex } from './identity.browser.ts'
import type { ModelSource } from './model-source.browser.ts'
import type { Signaling } from './net/signaling.ts'
import type { Timers } from './net/timers.ts'

/** The asker role of a page: fetches the tokenizer of the host's model. @throws CrowdError piece-unavailable, model-invalid */
export async function openBrowserClient(deps: {
  signaling: Signaling
  source: ModelSource
  manifestPath: string
  timers: Timers
}): Promise<Client> {
  const { signaling, source, timers } = deps
  const manifest = await source.manifest(deps.manifestPath)
  const [tokenizerJson, tokenizerConfig] = await Promise.all([
    source.json(manifest, 'tokenizer.json'),
    source.json(manifest, 'tokenizer_config.json'),
  ])
  return createClient({
    signaling,
    tokenizer: createTokenizer({ tokenizerJson, tokenizerConfig }),
    model: manifest.id,
    contextLength: manifest.contextLength,
    newRequestId: () => randomHex(8) as RequestId,
    later: (ms, task) => timers.after(ms, task),
  })
}
