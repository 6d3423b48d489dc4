import { CrowdError, toCrowdError } from '../core/errors.ts'
import { BUFFER_LOW_BYTES } from '../core/limits.ts'
import type { ChannelPath, Lane, Link, PairOrder } from './channel.ts'
import type { DistantLane, DistantLanes } from './distant-lanes.ts'
import { createLinkEvents, type LinkEvents } from './link-events.ts'
import { NO_CANDIDATES, type MakePeerLink, type PeerTry, type PeerTryDeps } from './peer-link.ts'
import { readPath } from './rtc-path.ts'

/** What is used of simple-peer: signals, send() and its events, never its streams. */
export interface SimplePeerInstance {
  /** Its RTCPeerConnection. Not in its documentation; needed for the second channel and for the path. */
  readonly _pc: RTCPeerConnection
  readonly bufferSize: number
  readonly destroyed: boolean
  signal(data: object): void
  send(message: Uint8Array): void
  destroy(): void
  on(event: 'connect' | 'close', handler: () => void): unknown
  on(event: 'signal' | 'data', handler: (data: unknown) => void): unknown
  on(event: 'error', handler: (error: Error) => void): unknown
  on(event: 'iceStateChange', handler: (ice: string, gathering: string) => void): unknown
}

export type CreateSimplePeer = (options: {
  initiator: boolean
  config: RTCConfiguration
}) => SimplePeerInstance

/** Negotiated ids are agreed by being constant; simple-peer's own channel takes a low free one. */
const BULK_CHANNEL_ID = 100

/**
 * Direct links by simple-peer. Control goes over simple-peer's own channel; bulk over a second one with a fixed
 * id, made on both sides before any signal is handled, so that no message can come before its channel. The ICE
 * servers are the order's and nobody else's.
 */
export function createSimplePeerLinks(deps: SimplePeerDeps): MakePeerLink {
  return (tryDeps) => beginTry(deps, tryDeps)
}

export type SimplePeerDeps = {
  readonly createPeer: CreateSimplePeer
  /** The thread that serves bulk lanes, where there is one. */
  readonly lanes?: Pick<DistantLanes, 'adopt'>
}

function beginTry(
  { createPeer, lanes }: SimplePeerDeps,
  { order, onSignal }: PeerTryDeps,
): PeerTry {
  const events = createLinkEvents()
  const peer = createPeer({
    initiator: order.initiator,
    config: { iceServers: order.iceServers.map(toIceServer) },
  })
  const channel = peer._pc.createDataChannel('bulk', { negotiated: true, id: BULK_CHANNEL_ID })

  // simple-peer reports one end several times (error, close, the channel's close); the first counts.
  const end = (reason: string) => {
    events.close(reason)
    if (!peer.destroyed) peer.destroy()
    // A data channel in another thread hears nothing of a connection that never opened.
    bulk.distant?.fail(new CrowdError('link-closed', reason))
  }
  peer.on('signal', onSignal)
  peer.on('error', (error) => end(`transport: ${error.message}`))
  peer.on('close', () => end('transport: closed'))
  peer.on('data', (data) => take(events, 'control', data, end))
  // Pieces are stored here, and the compute thread has other work.
  const adopting = order.purpose === 'pieces' ? undefined : lanes
  const distant = adopting?.adopt(channel, order.peer, {
    said: (bytes) => events.message('bulk', bytes),
    closed: () => end('transport: closed'),
  })
  const bulk = distant ? throughThread(distant) : bulkOver(channel, { events, end })

  const opening = bothOpen(peer, bulk).then(async () =>
    linkOver({ peer, bulk, events, end }, await readPath(peer._pc)),
  )
  const failing = new Promise<never>((_, failed) => {
    const fail = (reason: string) => failed(new CrowdError('link-closed', reason))
    peer.on('error', (error) => fail(error.message))
    peer.on('close', () => fail('closed before it opened'))
    peer.on('iceStateChange', (_ice, gathering) => {
      // Nothing to try with: no network, or WebRTC is forbidden here. There will be no other event.
      if (gathering === 'complete' && !hasCandidates(peer._pc)) fail(NO_CANDIDATES)
    })
  })
  const link = Promise.race([opening, failing])
  link.catch(() => end('closed: the try failed'))

  return {
    link,
    accept(signal) {
      if (events.closed || peer.destroyed || typeof signal !== 'object' || signal === null) return
      try {
        peer.signal(signal)
      } catch (thrown) {
        end(`transport: ${toCrowdError(thrown).message}`)
      }
    },
    close: () => end('closed: the try was given up'),
  }
}

function toIceServer({
  urls,
  username,
  credential,
}: PairOrder['iceServers'][number]): RTCIceServer {
  const server: RTCIceServer = { urls }
  if (username !== undefined) server.username = username
  if (credential !== undefined) server.credential = credential
  return server
}

function hasCandidates(connection: RTCPeerConnection): boolean {
  return /^a=candidate:/m.test(connection.localDescription?.sdp ?? '')
}

function bothOpen(peer: SimplePeerInstance, bulk: BulkPort): Promise<unknown> {
  const control = new Promise<void>((done) => {
    peer.on('connect', done)
  })
  return Promise.all([control, bulk.opened])
}

/** The bulk data channel, here or in another thread. */
type BulkPort = {
  readonly opened: Promise<void>
  readonly distant: DistantLane | null
  send(message: Uint8Array): void
  bufferedBytes(): number
}

function throughThread(distant: DistantLane): BulkPort {
  return { opened: distant.opened, distant, send: distant.say, bufferedBytes: () => 0 }
}

function bulkOver(
  channel: RTCDataChannel,
  { events, end }: Pick<Parts, 'events' | 'end'>,
): BulkPort {
  channel.binaryType = 'arraybuffer'
  channel.bufferedAmountLowThreshold = BUFFER_LOW_BYTES
  channel.onmessage = (event) => take(events, 'bulk', event.data, end)
  channel.onbufferedamountlow = () => events.drain()
  channel.onclose = () => end('transport: closed')
  const opened = new Promise<void>((done) => {
    if (channel.readyState === 'open') done()
    else channel.onopen = () => done()
  })
  return {
    opened,
    distant: null,
    send: (message) => channel.send(asOwnBuffer(message)),
    bufferedBytes: () => channel.bufferedAmount,
  }
}

type Parts = {
  readonly peer: SimplePeerInstance
  readonly bulk: BulkPort
  readonly events: LinkEvents
  readonly end: (reason: string) => void
}

function linkOver({ peer, bulk, events, end }: Parts, path: ChannelPath): Link {
  return {
    path,
    ...(bulk.distant === null ? {} : { distant: bulk.distant }),
    send(lane, message) {
      if (events.closed) throw new CrowdError('link-closed', 'the link is closed')
      try {
        if (lane === 'control') peer.send(message)
        else bulk.send(message)
      } catch (thrown) {
        throw toCrowdError(thrown, 'link-closed')
      }
    },
    bufferedBytes: (lane) => (lane === 'control' ? peer.bufferSize : bulk.bufferedBytes()),
    onDrain: events.onDrain,
    onMessage: events.onMessage,
    onClose: events.onClose,
    close: end,
  }
}

/** RTCDataChannel's type takes no view on shared memory, and none of ours is. */
function asOwnBuffer(message: Uint8Array): Uint8Array<ArrayBuffer> {
  return message.buffer instanceof ArrayBuffer
    ? (message as Uint8Array<ArrayBuffer>)
    : new Uint8Array(message)
}

function take(events: LinkEvents, lane: Lane, data: unknown, end: (reason: string) => void): void {
  if (data instanceof ArrayBuffer) events.message(lane, new Uint8Array(data))
  else if (data instanceof Uint8Array) {
    // simple-peer wraps messages in its own Buffer class; a plain view behaves as everybody expects.
    events.message(lane, new Uint8Array(data.buffer, data.byteOffset, data.byteLength))
  } else end('bad-frame: bad link message: not binary')
}
