import { CrowdError, fromWire, toCrowdError } from '../core/errors.ts'
import type { PeerId } from '../core/ids.ts'
import { BUFFER_LOW_BYTES, CHUNK_BYTES } from '../core/limits.ts'
import type { MessageEnd } from '../core/message-end.ts'
import { LINK_MESSAGE } from '../core/wire/link-message.ts'
import { createBulkLane, type LocalBulkLane } from './bulk-lane.ts'
import type { LaneNews, LaneOrder } from './lane-messages.ts'

export type LaneHost = {
  /** Sends a frame on a lane. @throws CrowdError link-closed */
  send(lane: number, frame: Uint8Array): Promise<void>
}

export type LaneHostDeps = {
  readonly end: MessageEnd<LaneNews, LaneOrder>
  readonly now: () => number
  /** Runs `task` after `ms` unless the returned function was called. */
  readonly later: (ms: number, task: () => void) => () => void
  /** A whole frame. What it throws ends the lane with that reason. */
  readonly onFrame: (peer: PeerId, frame: Uint8Array) => void
}

type Served = { greeted: boolean; readonly channel: RTCDataChannel; readonly lane: LocalBulkLane }

/** How often the numbers of the lanes go to the page while they change. */
const STATS_MS = 1_000

/** Serves bulk lanes where the computing is: frames reach it without a turn through the page. */
export function createLaneHost(deps: LaneHostDeps): LaneHost {
  const { end, now } = deps
  const served = new Map<number, Served>()
  let stopTicking: (() => void) | null = null

  function adopt({ lane: id, peer, creditBytes, channel }: LaneOrder & { kind: 'adopt' }): void {
    channel.binaryType = 'arraybuffer'
    channel.bufferedAmountLowThreshold = BUFFER_LOW_BYTES
    const lane = createBulkLane({
      out: {
        // The chunk has a buffer of its own.
        send: (message) => channel.send(message as Uint8Array<ArrayBuffer>),
        bufferedBytes: () => channel.bufferedAmount,
      },
      now,
      creditBytes,
      grant: (consumed) => end.post({ kind: 'grant', lane: id, consumed }),
      onBroken: (thrown) => fault(id, thrown),
    })
    lane.onFrame((frame) => deps.onFrame(peer, frame))
    channel.onmessage = ({ data }: MessageEvent<unknown>) => {
      try {
        receive(id, data)
      } catch (thrown) {
        fault(id, thrown)
      }
    }
    channel.onbufferedamountlow = () => lane.pump()
    channel.onclose = () => {
      end.post({ kind: 'closed', lane: id })
      drop(id, new CrowdError('link-closed', 'the data channel closed'))
    }
    const opened = (): void => end.post({ kind: 'opened', lane: id })
    if (channel.readyState === 'open') opened()
    else channel.onopen = opened
    served.set(id, { greeted: false, channel, lane })
    stopTicking ??= deps.later(STATS_MS, tick)
  }

  function receive(id: number, data: unknown): void {
    const found = served.get(id)
    if (found === undefined) return
    if (!(data instanceof ArrayBuffer)) {
      throw new CrowdError('bad-frame', 'bad link message: not binary')
    }
    const bytes = new Uint8Array(data)
    if (bytes[0] !== LINK_MESSAGE.chunk) {
      found.greeted ||= bytes[0] === LINK_MESSAGE.hello
      end.post({ kind: 'said', lane: id, bytes }, [data])
      return
    }
    if (bytes.length > CHUNK_BYTES) {
      throw new CrowdError('bad-frame', `bad link message: ${bytes.length} bytes`)
    }
    if (!found.greeted) throw new CrowdError('bad-frame', 'bad chunk: before the hello')
    found.lane.receive(bytes)
  }

  /** Nothing passes any more. The data channel stays until the page has told the other end why. */
  function fault(id: number, thrown: unknown): void {
    const error = toCrowdError(thrown, 'link-closed')
    served.get(id)?.lane.fail(error)
    end.post({ kind: 'broken', lane: id, error: error.toWire() })
  }

  function drop(id: number, error: CrowdError): void {
    const { channel, lane } = served.get(id) ?? {}
    served.delete(id)
    lane?.fail(error)
    channel?.close()
  }

  /** Each lane's numbers, when they changed since the last time. */
  const told = new Map<number, string>()
  function tick(): void {
    for (const [id, { lane }] of served) {
      const { sentBytes, receivedBytes, stuckSinceMs } = lane
      const stuckMs = stuckSinceMs === null ? null : now() - stuckSinceMs
      const state = `${sentBytes} ${receivedBytes} ${stuckMs}`
      if (told.get(id) === state) continue
      told.set(id, state)
      end.post({ kind: 'stats', lane: id, sentBytes, receivedBytes, stuckMs })
    }
    for (const id of told.keys()) if (!served.has(id)) told.delete(id)
    stopTicking = served.size === 0 ? null : deps.later(STATS_MS, tick)
  }

  end.listen((order) => {
    if (order.kind === 'adopt') {
      adopt(order)
      return
    }
    const found = served.get(order.lane)
    if (found === undefined) return
    try {
      obey(found, order)
    } catch (thrown) {
      fault(order.lane, thrown)
    }
  })

  function obey({ channel, lane }: Served, order: Exclude<LaneOrder, { kind: 'adopt' }>): void {
    switch (order.kind) {
      case 'say': {
        channel.send(order.bytes as Uint8Array<ArrayBuffer>)
        return
      }
      case 'announced': {
        lane.announced(order.windowBytes)
        return
      }
      case 'open': {
        lane.open()
        return
      }
      case 'granted': {
        lane.granted(order.consumed)
        return
      }
      case 'close': {
        drop(order.lane, fromWire(order.error))
        return
      }
    }
  }

  return {
    send(id, frame) {
      const found = served.get(id)
      if (found === undefined)
        return Promise.reject(new CrowdError('link-closed', 'the link is closed'))
      return found.lane.send(frame)
    },
  }
}
