import { EARLY_MESSAGES_MAX } from '../core/limits.ts'
import type { Lane, Link } from './channel.ts'

export type LinkEvents = Pick<Link, 'onMessage' | 'onDrain' | 'onClose'> & {
  readonly closed: boolean
  message(lane: Lane, message: Uint8Array): void
  drain(): void
  /** The first call counts, whatever the transport reports afterwards. */
  close(reason: string): void
}

/** The handlers of one link: keeps early messages, and says close once. Every link is built on it. */
export function createLinkEvents(): LinkEvents {
  let onMessage: ((lane: Lane, message: Uint8Array) => void) | null = null
  let onDrain: (() => void) | null = null
  let onClose: ((reason: string) => void) | null = null
  let closedBecause: string | null = null
  let waiting: { lane: Lane; message: Uint8Array }[] = []

  function close(reason: string): void {
    if (closedBecause !== null) return
    closedBecause = reason
    waiting = []
    onClose?.(reason)
  }

  return {
    get closed() {
      return closedBecause !== null
    },
    message(lane, message) {
      if (closedBecause !== null) return
      if (onMessage !== null) onMessage(lane, message)
      else if (waiting.length < EARLY_MESSAGES_MAX) waiting.push({ lane, message })
      else close('bad-frame: too many messages before the handshake')
    },
    drain() {
      if (closedBecause === null) onDrain?.()
    },
    close,
    onMessage(handler) {
      onMessage = handler
      const early = waiting
      waiting = []
      for (const { lane, message } of early) {
        if (closedBecause === null) handler(lane, message)
      }
    },
    onDrain(handler) {
      onDrain = handler
    },
    onClose(handler) {
      onClose = handler
      if (closedBecause !== null) handler(closedBecause)
    },
  }
}
