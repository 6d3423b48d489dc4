import type { BrowserClients } from './browser-client.browser.ts'
import type { Client } from './client/client-types.ts'
import { CrowdError } from './core/errors.ts'
import { tabIdentity } from './identity.browser.ts'
import { createModelSource } from './model-source.ts'
import type { SignalingState } from './net/signaling.ts'
import { createSignaling } from './net/signaling-client.ts'
import { createSystemTimers } from './net/timers.ts'
import type { ServerMessageOf } from './protocol/server-to-client.ts'
import type { SwarmSnapshot } from './protocol/swarm-snapshot.ts'

/** The model that a host serves. */
export type ServedModel = Pick<ServerMessageOf<'model'>, 'model' | 'revision' | 'manifestPath'>

export type SwarmOptions = {
  /** The host; default: where the page came from. */
  url?: string
  /** The pool's secret, from the join URL's fragment. */
  secret: string
  role: 'asker' | 'watcher'
  name?: string
}

/** A page's connection to a host: the state of the swarm, and text for those who ask. */
export type SwarmConnection = {
  /** Called at once with the present state, then on every change. Returns how to stop listening. */
  onState(handler: (state: SignalingState) => void): () => void
  onSwarm(handler: (snapshot: SwarmSnapshot) => void): () => void
  /** Called with the model that the host serves: at once where it is known, after every welcome, and on every change. */
  onModel(handler: (served: ServedModel) => void): () => void
  /**
   * Fetches the tokenizer once the host has said which model it serves. To be called again whenever
   * `onModel` says so: gives the same client where the model is still the same, else closes the old one. A call ends the one before it, if that is still at it. @throws CrowdError
   */
  createClient(): Promise<Client>
  close(): void
}

export function openSwarm(options: SwarmOptions): SwarmConnection {
  const url = options.url ?? location.origin
  const timers = createSystemTimers()
  const states = new Set<(state: SignalingState) => void>()
  const models = new Set<(served: ServedModel) => void>()
  const swarms = new Set<(snapshot: SwarmSnapshot) => void>()
  const source = createModelSource(url)
  const closed = new AbortController()
  let state: SignalingState = { kind: 'connecting' }
  let snapshot: SwarmSnapshot | null = null
  let served: ServedModel | null = null
  let clients: BrowserClients | null = null
  let loading = new AbortController()

  const opening = tabIdentity(options.role).then((identity) => {
    const signaling = createSignaling({
      url,
      identity: {
        role: options.role,
        ...identity,
        name: options.name ?? '',
        secret: options.secret,
      },
      timers,
    })
    signaling.onState((next) => {
      state = next
      for (const handler of states) handler(next)
      if (next.kind === 'open') serve(next.welcome)
    })
    signaling.onMessage((message) => {
      if (message.kind === 'model') serve(message)
      if (message.kind !== 'swarm') return
      snapshot = message.swarm
      for (const handler of swarms) handler(message.swarm)
    })
    if (!closed.signal.aborted) signaling.connect()
    closed.signal.addEventListener('abort', () => signaling.close())
    return signaling
  })

  function serve(next: ServedModel): void {
    served = next
    for (const handler of models) handler(next)
  }

  /** The host's welcome; waits for it. @throws CrowdError when the host refuses */
  function welcomed(): Promise<Extract<SignalingState, { kind: 'open' }>['welcome']> {
    return new Promise((resolve, reject) => {
      const stop = onState((next) => {
        if (next.kind === 'open') resolve(next.welcome)
        else if (next.kind === 'refused') reject(next.error)
        else if (next.kind === 'closed')
          reject(new CrowdError('signaling-closed', 'the connection was closed'))
        else return
        // The first call comes before `stop` exists.
        queueMicrotask(() => stop())
      })
    })
  }

  function onState(handler: (state: SignalingState) => void): () => void {
    states.add(handler)
    handler(state)
    return () => states.delete(handler)
  }

  return {
    onState,
    onSwarm(handler) {
      swarms.add(handler)
      if (snapshot !== null) handler(snapshot)
      return () => swarms.delete(handler)
    },
    onModel(handler) {
      models.add(handler)
      if (served !== null) handler(served)
      return () => models.delete(handler)
    },
    async createClient() {
      loading.abort()
      loading = new AbortController()
      const signal = AbortSignal.any([closed.signal, loading.signal])
      const signaling = await opening
      const welcome = await welcomed()
      const { manifestPath } = served ?? welcome
      // Pages that only watch need no tokenizer.
      const { createBrowserClients } = await import('./browser-client.browser.ts')
      clients ??= createBrowserClients({ signaling, source, timers })
      return await clients.open(manifestPath, signal)
    },
    close() {
      closed.abort()
    },
  }
}
