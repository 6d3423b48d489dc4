import { io } from 'socket.io-client'
import { CrowdError, fromWire, type ErrorCode } from '../core/errors.ts'
import type { PairId } from '../core/ids.ts'
import {
  CHUNK_BYTES,
  CONTROL_MESSAGE_MAX_BYTES,
  HELLO_MS,
  PROMPT_MAX_TOKENS,
  RECONNECT_FIRST_MS,
  RECONNECT_LAST_MS,
} from '../core/limits.ts'
import type { ClientMessage, ClientMessageOf } from '../protocol/client-to-server.ts'
import { parseServerMessage } from '../protocol/parse.ts'
import { parseRelayed } from '../protocol/relayed.ts'
import type { ServerMessage } from '../protocol/server-to-client.ts'
import { FEATURES, PROTOCOL } from '../protocol/version.ts'
import type { Signaling, SignalingState } from './signaling.ts'
import type { Timers } from './timers.ts'

/** Who this peer is. The same on every reconnect, so that it keeps its place. */
export type SignalingIdentity = Pick<
  ClientMessageOf<'hello'>,
  'role' | 'peer' | 'token' | 'name' | 'secret'
>

export type SignalingDeps = {
  /** The host's origin, e.g. `https://192.168.1.20:7080`. */
  readonly url: string
  readonly identity: SignalingIdentity
  readonly timers: Timers
  readonly log?: (event: string) => void
}

export type SignalingClient = Signaling & {
  /** Messages of the host that were no messages, since the start. */
  readonly ignoredCount: number
}

/** Refusals that pass with time; after any other one trying again can't help, or would push somebody else out. */
const RETRIED: ReadonlySet<ErrorCode> = new Set([
  'too-many-requests',
  'timeout',
  'signaling-closed',
])

/**
 * The control plane over socket.io, in a page or in Node: websocket only, one event each way, hello on every
 * connect. Reconnects are socket.io's own, with growing pauses and jitter; a refusal ends them.
 */
export function createSignaling(deps: SignalingDeps): SignalingClient {
  const { timers, identity } = deps
  const log = deps.log ?? (() => undefined)
  const messageHandlers: ((message: ServerMessage) => void)[] = []
  const stateHandlers: ((state: SignalingState) => void)[] = []
  const relayHandlers: ((pair: PairId, message: Uint8Array) => void)[] = []
  let state: SignalingState = { kind: 'connecting' }
  let ignoredCount = 0
  let cancelHelloLimit: () => void = () => undefined
  let cancelRetry: () => void = () => undefined
  /** The host's last word, if it was a no; followed by a disconnect it was the last. */
  let refusal: CrowdError | null = null
  let kicks = 0

  const socket = io(deps.url, {
    transports: ['websocket'],
    autoConnect: false,
    forceNew: true,
    timeout: HELLO_MS,
    reconnectionDelay: RECONNECT_FIRST_MS,
    reconnectionDelayMax: RECONNECT_LAST_MS,
    randomizationFactor: 0.5,
  })

  function setState(next: SignalingState): void {
    if (ended() && next.kind !== 'closed') return
    state = next
    for (const handler of stateHandlers) handler(next)
  }

  function ended(): boolean {
    return state.kind === 'closed' || state.kind === 'refused'
  }

  function greet(): void {
    refusal = null
    setState({ kind: 'connecting' })
    const hello: ClientMessage = {
      kind: 'hello',
      protocol: PROTOCOL,
      features: [...FEATURES],
      ...identity,
    }
    socket.emit('message', hello)
    cancelHelloLimit()
    cancelHelloLimit = timers.after(HELLO_MS, () => {
      // Closing the transport, not the socket, leaves the retrying to socket.io.
      setState({ kind: 'lost', reason: 'the host did not answer the hello' })
      socket.io.engine.close()
    })
  }

  function lose(reason: string): void {
    cancelHelloLimit()
    // After a pause of the page socket.io keeps what is sent, and would send it before the next hello.
    socket.sendBuffer = []
    if (ended()) return
    if (reason !== 'io server disconnect') setState({ kind: 'lost', reason })
    else if (refusal !== null && !RETRIED.has(refusal.code)) refuse(refusal)
    else {
      setState({ kind: 'lost', reason: refusal?.message ?? 'the host closed the connection' })
      // The one ending that socket.io doesn't retry by itself.
      const pauseMs = Math.min(RECONNECT_FIRST_MS * 2 ** kicks, RECONNECT_LAST_MS)
      kicks += 1
      cancelRetry = timers.after(pauseMs, () => socket.connect())
    }
  }

  function refuse(error: CrowdError): void {
    cancelHelloLimit()
    setState({ kind: 'refused', error })
    socket.disconnect()
  }

  function receive(input: unknown): void {
    const parsed = parseServerMessage(input)
    if (!parsed.ok) {
      ignoredCount += 1
      log(`ignored: ${parsed.error.message}`)
      return
    }
    const { message } = parsed
    refusal = message.kind === 'refused' ? fromWire(message.error) : null
    if (state.kind === 'connecting') answerHello(message)
    else if (state.kind === 'open') for (const handler of messageHandlers) handler(message)
  }

  /** Before the welcome nothing but the answer to the hello counts. */
  function answerHello(message: ServerMessage): void {
    if (message.kind === 'welcome') {
      cancelHelloLimit()
      kicks = 0
      setState({ kind: 'open', welcome: message })
    } else if (refusal !== null && !RETRIED.has(refusal.code)) refuse(refusal)
  }

  function receiveRelayed(pair: unknown, message: unknown): void {
    const relayed = parseRelayed(pair, message)
    if (relayed === null) {
      ignoredCount += 1
      log('ignored: a relayed message without its shape')
      return
    }
    if (state.kind !== 'open') return
    for (const handler of relayHandlers) handler(relayed.pair, relayed.bytes)
  }

  socket.on('connect', greet)
  socket.on('disconnect', (reason) => lose(reason))
  socket.on('connect_error', (error) => lose(error.message))
  socket.on('message', receive)
  socket.on('relay', receiveRelayed)

  return {
    connect() {
      if (!ended()) socket.connect()
    },
    send(message) {
      if (state.kind !== 'open' || !socket.connected) return false
      checkSize(message)
      socket.emit('message', message)
      return true
    },
    onMessage: (handler) => void messageHandlers.push(handler),
    onState(handler) {
      stateHandlers.push(handler)
      handler(state)
    },
    relay: {
      send(pair, message) {
        if (state.kind !== 'open' || !socket.connected) return false
        if (message.length > CHUNK_BYTES) {
          throw new CrowdError('bad-message', `relay message of ${message.length} bytes`)
        }
        socket.emit('relay', pair, message)
        return true
      },
      onMessage: (handler) => void relayHandlers.push(handler),
    },
    get ignoredCount() {
      return ignoredCount
    },
    close() {
      if (state.kind === 'closed') return
      cancelHelloLimit()
      cancelRetry()
      setState({ kind: 'closed' })
      socket.disconnect()
    },
  }
}

/** The host closes on anything larger, so it is checked before it goes out. @throws CrowdError prompt-too-long, bad-message */
function checkSize(message: ClientMessage): void {
  if (message.kind === 'ask') {
    const tokens = message.prompt.length + (message.answered?.length ?? 0)
    if (tokens > PROMPT_MAX_TOKENS)
      throw new CrowdError(
        'prompt-too-long',
        `the prompt has ${tokens} tokens, a request takes ${PROMPT_MAX_TOKENS}`,
      )
  }
  const json = JSON.stringify(message)
  // At most three bytes a character: most messages need no encoding to be known small.
  if (json.length * 3 <= CONTROL_MESSAGE_MAX_BYTES) return
  const bytes = new TextEncoder().encode(json).length
  if (bytes > CONTROL_MESSAGE_MAX_BYTES) {
    throw new CrowdError(
      'bad-message',
      `message of kind "${message.kind}" has ${bytes} bytes, the limit is ${CONTROL_MESSAGE_MAX_BYTES}`,
    )
  }
}
