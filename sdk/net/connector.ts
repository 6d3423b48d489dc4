import { CrowdError } from '../core/errors.ts'
import type { PairId } from '../core/ids.ts'
import {
  EARLY_PAIRS_MAX,
  EARLY_RELAYED_MAX,
  EARLY_SIGNALS_MAX,
  RELAY_OPEN_MS,
} from '../core/limits.ts'
import { RELAY_FEATURE } from '../protocol/version.ts'
import type { Channel, Connector, Lane, PairOrder } from './channel.ts'
import { createDirectClimb, type DirectClimb } from './direct-climb.ts'
import { createEarlyBox } from './early-box.ts'
import { createChannel, type ChannelOptions, type FrameChannel } from './frame-channel.ts'
import { readPairSignal, type PairSignal } from './pair-signal.ts'
import type { MakePeerLink } from './peer-link.ts'
import { createRelayLink, readEnvelope, type RelayLink } from './relay-link.ts'
import type { Signaling } from './signaling.ts'
import type { Timers } from './timers.ts'

export type ConnectorDeps = {
  readonly signaling: Pick<Signaling, 'send' | 'relay' | 'onState'>
  /** null where there is no WebRTC: every pair goes to the relay at once. */
  readonly makePeerLink: MakePeerLink | null
  readonly timers: Timers
  /** For people who look for the cause: tries that failed, rungs taken. */
  readonly log?: (event: string) => void
}

/** One pair at one attempt: its ladder, then its channel. */
type Climb = {
  readonly order: PairOrder
  readonly result: Promise<Channel>
  accept(signal: PairSignal): void
  relayed(lane: Lane, bytes: Uint8Array): void
  signalingLost(reason: string): void
  stop(error: CrowdError): void
}

/**
 * Climbs direct -> TURN -> relay for each pair. TURN needs no rung of its own: ICE takes it when the order names a
 * server. Whoever gives up direct tries speaks on the relay; hearing the other end there for this attempt is the
 * sign to come along, so both ends always agree.
 */
export function createConnector(deps: ConnectorDeps, options: ChannelOptions = {}): Connector {
  const climbs = new Map<PairId, Climb>()
  const earlySignals = createEarlyBox<PairSignal>(EARLY_PAIRS_MAX, EARLY_SIGNALS_MAX)
  const earlyRelayed = createEarlyBox<{ lane: Lane; bytes: Uint8Array }>(
    EARLY_PAIRS_MAX,
    EARLY_RELAYED_MAX,
  )
  let closed = false
  let hostRelays = true

  deps.signaling.onState((state) => {
    if (state.kind === 'open') hostRelays = state.welcome.features.includes(RELAY_FEATURE)
    if (state.kind === 'open' || state.kind === 'connecting') return
    for (const climb of climbs.values()) climb.signalingLost(`the host connection is ${state.kind}`)
  })
  deps.signaling.relay.onMessage((pair, bytes) => {
    const envelope = readEnvelope(bytes)
    if (envelope === null || closed) return
    const climb = climbs.get(pair)
    if (climb !== undefined && envelope.attempt < climb.order.attempt) return
    if (climb?.order.attempt === envelope.attempt) climb.relayed(envelope.lane, bytes)
    // Hellos are the only thing that can be early; they are small.
    else if (bytes.length <= 64) {
      earlyRelayed.put(pair, envelope.attempt, { lane: envelope.lane, bytes })
    }
  })

  return {
    connect(order, signal) {
      if (closed) return Promise.reject(new CrowdError('aborted', 'the connector is closed'))
      if (signal.aborted) return Promise.reject(new CrowdError('aborted', 'connect was aborted'))
      const present = climbs.get(order.pair)
      if (present !== undefined && present.order.attempt >= order.attempt) {
        if (present.order.attempt === order.attempt) return present.result
        return Promise.reject(new CrowdError('aborted', `attempt ${order.attempt} is out of date`))
      }
      present?.stop(new CrowdError('aborted', `replaced by attempt ${order.attempt}`))
      const climb = createClimb({ ...deps, hostRelays: () => hostRelays }, options, order, () => {
        if (climbs.get(order.pair) === climb) climbs.delete(order.pair)
      })
      climbs.set(order.pair, climb)
      for (const early of earlySignals.take(order.pair, order.attempt)) climb.accept(early)
      for (const { lane, bytes } of earlyRelayed.take(order.pair, order.attempt)) {
        climb.relayed(lane, bytes)
      }
      const abort = () => climb.stop(new CrowdError('aborted', 'connect was aborted'))
      signal.addEventListener('abort', abort, { once: true })
      const forget = () => signal.removeEventListener('abort', abort)
      climb.result.then(forget, forget)
      return climb.result
    },
    accept(pair, attempt, data) {
      const signal = readPairSignal(data)
      if (signal === null || closed) return
      const climb = climbs.get(pair)
      if (climb !== undefined && attempt < climb.order.attempt) return
      if (climb?.order.attempt === attempt) climb.accept(signal)
      else earlySignals.put(pair, attempt, signal)
    },
    close() {
      if (closed) return
      closed = true
      for (const climb of [...climbs.values()]) {
        climb.stop(new CrowdError('aborted', 'the connector was closed'))
      }
      earlySignals.clear()
      earlyRelayed.clear()
    },
  }
}

function createClimb(
  deps: ConnectorDeps & { hostRelays(): boolean },
  options: ChannelOptions,
  order: PairOrder,
  onGone: () => void,
): Climb {
  const { timers, signaling } = deps
  const log = deps.log ?? (() => undefined)
  let channel: FrameChannel | null = null
  let relay: RelayLink | null = null
  let stopped: CrowdError | null = null
  const waiting: { lane: Lane; bytes: Uint8Array }[] = []

  const direct: DirectClimb | null =
    deps.makePeerLink === null
      ? null
      : createDirectClimb(
          {
            order,
            makePeerLink: deps.makePeerLink,
            timers,
            log,
            sendSignal: (data) => {
              const { pair, attempt } = order
              signaling.send({ kind: 'signal', pair, attempt, data })
            },
          },
          options,
        )

  async function run(): Promise<Channel> {
    // Lets connect() hand over early messages first: they may say that the relay is the way.
    await Promise.resolve()
    const straight = direct === null || waiting.length > 0 ? null : await direct.run()
    if (stopped !== null) {
      straight?.close('closed: not needed any more')
      throw stopped
    }
    // The other end may have given up in the very moment in which this one succeeded.
    if (waiting.length > 0) straight?.close('closed: the other end went to the relay')
    channel = straight === null || waiting.length > 0 ? await openRelay() : straight
    channel.onClose(onGone)
    log(`pair ${order.pair} to ${order.peer} is open: ${channel.path}`)
    return channel
  }

  async function openRelay(): Promise<FrameChannel> {
    if (order.purpose === 'pieces') {
      throw new CrowdError('link-closed', `no direct connection to ${order.peer} came about`)
    }
    if (!deps.hostRelays()) {
      throw new CrowdError(
        'link-closed',
        `no direct connection to ${order.peer} came about, and this host does not relay`,
      )
    }
    relay = createRelayLink({ order, send: signaling.relay.send, onClosed: () => undefined })
    const opening = createChannel({ link: relay, order, timers }, options)
    channel = opening
    const cancel = timers.after(RELAY_OPEN_MS, () =>
      opening.close('timeout: no answer on the relay'),
    )
    for (const { lane, bytes } of waiting.splice(0)) relay.receive(lane, bytes)
    let reason = ''
    opening.onClose((closedBecause) => {
      reason = closedBecause
    })
    try {
      await opening.opened
      return opening
    } catch (thrown) {
      if (stopped !== null) throw stopped
      if (reason.startsWith('timeout')) throw new CrowdError('timeout', reason, { cause: thrown })
      throw new CrowdError('signaling-closed', `relay: ${reason}`, { cause: thrown })
    } finally {
      cancel()
    }
  }

  const result = run()
  result.catch(onGone)

  return {
    order,
    result,
    accept: (signal) => direct?.accept(signal),
    relayed(lane, bytes) {
      if (relay !== null) relay.receive(lane, bytes)
      else if (channel !== null) channel.close('closed: the other end went to the relay')
      else {
        if (waiting.length < EARLY_RELAYED_MAX) waiting.push({ lane, bytes })
        direct?.stop()
      }
    },
    signalingLost: (reason) => relay?.lost(reason),
    stop(error) {
      stopped ??= error
      direct?.stop()
      channel?.close(`closed: ${error.message}`)
      onGone()
    },
  }
}
