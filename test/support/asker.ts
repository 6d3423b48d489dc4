import { createClient } from '../../sdk/client/client.ts'
import type { Client } from '../../sdk/client/client-types.ts'
import type { Tokenizer } from '../../sdk/client/tokenizer.ts'
import type { PeerId, RequestId } from '../../sdk/core/ids.ts'
import type { Manifest } from '../../sdk/core/model/manifest.ts'
import { createSignaling } from '../../sdk/net/signaling-client.ts'
import { createSystemTimers } from '../../sdk/net/timers.ts'

export type Asker = { readonly client: Client; close(): void }

/** The asker role in this process, over a real socket. */
export async function openAsker(options: {
  url: string
  secret: string | null
  manifest: Manifest
  tokenizer: Tokenizer
}): Promise<Asker> {
  const timers = createSystemTimers()
  const id = Math.random().toString(16).slice(2, 14)
  const signaling = createSignaling({
    url: options.url,
    identity: {
      role: 'asker',
      peer: `asker-${id}` as PeerId,
      token: id,
      name: 'asker',
      secret: options.secret ?? '',
    },
    timers,
  })
  await new Promise<void>((resolve, reject) => {
    signaling.onState((state) => {
      if (state.kind === 'open') resolve()
      if (state.kind === 'refused') reject(state.error)
    })
    signaling.connect()
  })
  let requests = 0
  const client = createClient({
    signaling,
    tokenizer: options.tokenizer,
    model: options.manifest.id,
    revision: options.manifest.revision,
    contextLength: options.manifest.contextLength,
    newRequestId: () => `${id}-${(requests += 1)}` as RequestId,
    later: (ms, task) => timers.after(ms, task),
  })
  return {
    client,
    close() {
      client.close()
      signaling.close()
    },
  }
}
