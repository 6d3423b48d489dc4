import type { Response } from 'express'
import { STREAM_COMMENT_MS, UNREAD_MAX_BYTES } from './api-limits.ts'

/** A stream of server-sent events. Nothing of it is held back anywhere on the way. */
export type EventStream = {
  data(body: unknown): void
  /** A line that clients skip; line breaks in it are dropped. */
  comment(text: string): void
  /** Says that this was all, and ends. Idempotent. */
  end(): void
}

/**
 * Sends the headers at once. Whenever nothing was sent for a while, a comment follows: the question waits for
 * its turn, or the ring reads a long prompt, and neither the client nor a proxy should give up. A client that
 * leaves too much unread is cut off, which cancels what is computed for it.
 */
export function openEventStream(
  response: Response,
  later: (ms: number, task: () => void) => () => void,
): EventStream {
  let cancel: () => void = () => undefined
  let ended = false

  function write(text: string): void {
    if (ended || response.destroyed) return
    response.write(text)
    cancel()
    // A client that does not read: what waits for it lies in this process's memory.
    if (response.writableLength > UNREAD_MAX_BYTES) {
      response.destroy()
      return
    }
    cancel = later(STREAM_COMMENT_MS, () => write(': waiting\n\n'))
  }

  response.status(200).set({
    'Content-Type': 'text/event-stream; charset=utf-8',
    'Cache-Control': 'no-store, no-transform',
    Connection: 'keep-alive',
    'X-Accel-Buffering': 'no',
  })
  response.flushHeaders()
  write(': waiting\n\n')
  response.once('close', () => {
    ended = true
    cancel()
  })

  return {
    data: (body) => write(`data: ${JSON.stringify(body)}\n\n`),
    comment: (text) => write(`: ${text.replaceAll(/[\r\n]+/g, ' ')}\n\n`),
    end() {
      if (ended) return
      write('data: [DONE]\n\n')
      ended = true
      cancel()
      response.end()
    },
  }
}
