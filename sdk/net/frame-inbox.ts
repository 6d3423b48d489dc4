import { CrowdError } from '../core/errors.ts'
import { EARLY_FRAMES_MAX } from '../core/limits.ts'

export type FrameInbox = {
  /** `consumed` is called once the listener took the frame. @throws what the listener throws; CrowdError bad-frame */
  put(frame: Uint8Array, consumed: () => void): void
  onFrame(handler: (frame: Uint8Array) => void): void
  close(): void
}

/** Frames between the wire and their one listener; those that come before it listens wait, in order. */
export function createFrameInbox(): FrameInbox {
  let handler: ((frame: Uint8Array) => void) | null = null
  let waiting: { frame: Uint8Array; consumed: () => void }[] = []
  let closed = false

  function put(frame: Uint8Array, consumed: () => void): void {
    if (closed) return
    if (handler === null) {
      if (waiting.length >= EARLY_FRAMES_MAX) {
        throw new CrowdError('bad-frame', 'bad flow: too many frames before anybody listens')
      }
      waiting.push({ frame, consumed })
      return
    }
    handler(frame)
    consumed()
  }

  return {
    put,
    onFrame(listener) {
      handler = listener
      const early = waiting
      waiting = []
      for (const { frame, consumed } of early) put(frame, consumed)
    },
    close() {
      closed = true
      waiting = []
    },
  }
}
