import { CrowdError } from '../errors.ts'
import { CHUNK_BYTES } from '../limits.ts'

/** Both ends count all bulk message bytes since the link opened, modulo 2^32, so no grant can be lost. */

export type SendWindow = {
  /** Bytes that may still be sent now. */
  readonly free: number
  /** The other end said how much it takes; `own` is this side's limit. @throws CrowdError bad-frame */
  open(announcedBytes: number): void
  sent(bytes: number): void
  /** @throws CrowdError bad-frame where the other end consumed what was never sent */
  granted(consumedTotal: number): void
}

/** The sender's half: never more in flight than both ends allow. Zero until opened. */
export function createSendWindow(ownBytes: number): SendWindow {
  let window = 0
  let sentTotal = 0
  let consumedTotal = 0
  const inFlight = () => (sentTotal - consumedTotal) >>> 0
  return {
    get free() {
      return Math.max(0, window - inFlight())
    },
    open(announcedBytes) {
      if (announcedBytes < 2 * CHUNK_BYTES) {
        throw new CrowdError('bad-frame', `bad hello: window of ${announcedBytes} bytes`)
      }
      window = Math.min(announcedBytes, ownBytes)
    },
    sent(bytes) {
      sentTotal = (sentTotal + bytes) >>> 0
    },
    granted(total) {
      const more = (total - consumedTotal) >>> 0
      if (more > inFlight()) {
        throw new CrowdError('bad-frame', `bad credit: ${more} bytes, ${inFlight()} are in flight`)
      }
      consumedTotal = total
    },
  }
}

export type ReceiveWindow = {
  /** @throws CrowdError bad-frame where the other end sent more than its window */
  received(bytes: number): void
  /** Returns the total to grant when enough was consumed since the last grant, otherwise null. */
  consumed(bytes: number): number | null
}

/** The receiver's half: grants in steps, so that a stream of small frames costs few grants. */
export function createReceiveWindow(windowBytes: number): ReceiveWindow {
  // Below half of the smallest window less one chunk, so a sender never waits for a grant that isn't due.
  const step = Math.min(windowBytes >> 2, CHUNK_BYTES >> 1)
  let receivedTotal = 0
  let consumedTotal = 0
  let grantedTotal = 0
  return {
    received(bytes) {
      receivedTotal = (receivedTotal + bytes) >>> 0
      const inFlight = (receivedTotal - grantedTotal) >>> 0
      if (inFlight > windowBytes) {
        throw new CrowdError(
          'bad-frame',
          `bad flow: ${inFlight} bytes in a window of ${windowBytes}`,
        )
      }
    },
    consumed(bytes) {
      consumedTotal = (consumedTotal + bytes) >>> 0
      if ((consumedTotal - grantedTotal) >>> 0 < step) return null
      grantedTotal = consumedTotal
      return grantedTotal
    },
  }
}
