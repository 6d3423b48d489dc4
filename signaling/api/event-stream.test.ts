import { EventEmitter, once } from 'node:events'
import { connect, type AddressInfo } from 'node:net'
import express, { type Response } from 'express'
import { expect, test } from 'vitest'
import { createManualTimers } from '../../test/support/manual-timers.ts'
import { STREAM_COMMENT_MS, UNREAD_MAX_BYTES } from './api-limits.ts'
import { openEventStream } from './event-stream.ts'

/** As much of a response as a stream needs, and what was done to it. */
function setUp() {
  const written: string[] = []
  const done: string[] = []
  const headers: Record<string, string> = {}
  const events = new EventEmitter()
  const response = Object.assign(events, {
    destroyed: false,
    writableLength: 0,
    status: (code: number) => {
      done.push(String(code))
      return response
    },
    set: (more: Record<string, string>) => Object.assign(headers, more),
    flushHeaders: () => void done.push('headers'),
    write: (text: string) => written.push(text) > 0,
    end: () => void done.push('end'),
  })
  const timers = createManualTimers()
  // Cast: the stream touches nothing else of it.
  const stream = openEventStream(response as unknown as Response, (ms, task) =>
    timers.after(ms, task),
  )
  return { stream, timers, written, done, headers, close: () => events.emit('close') }
}

test('headers and a comment go out before anything is known', () => {
  const { done, written, headers } = setUp()
  expect(done).toEqual(['200', 'headers'])
  expect(written).toEqual([': waiting\n\n'])
  expect(headers).toMatchObject({ 'X-Accel-Buffering': 'no' })
})

test('silence is filled with comments, and only silence', async () => {
  const { stream, timers, written } = setUp()
  written.length = 0
  await timers.advance(STREAM_COMMENT_MS - 1)
  expect(written).toEqual([])
  stream.data({ a: 'line\nbreak' })
  await timers.advance(STREAM_COMMENT_MS - 1)
  expect(written).toEqual(['data: {"a":"line\\nbreak"}\n\n'])
  await timers.advance(2 * STREAM_COMMENT_MS)
  expect(written.slice(1)).toEqual([': waiting\n\n', ': waiting\n\n'])
})

test('it ends once, with the marker, and leaves no timer', async () => {
  const { stream, timers, written, done } = setUp()
  stream.end()
  stream.end()
  stream.data('late')
  expect(written.at(-1)).toBe('data: [DONE]\n\n')
  expect(done.filter((one) => one === 'end')).toHaveLength(1)
  await timers.advance(10 * STREAM_COMMENT_MS)
  expect(written).toHaveLength(2)
  expect(timers.pending).toBe(0)
})

test('after the other end closed nothing is written', async () => {
  const { stream, timers, written, close } = setUp()
  close()
  stream.data('late')
  stream.end()
  await timers.advance(STREAM_COMMENT_MS)
  expect(written).toEqual([': waiting\n\n'])
  expect(timers.pending).toBe(0)
})

test('a comment can’t break out of its line', () => {
  const { stream, written } = setUp()
  stream.comment('a\n\ndata: {"choices":[]}\r\n')
  expect(written.at(-1)).toBe(': a data: {"choices":[]} \n\n')
})

test('a client that does not read is cut off before much waits for it', async () => {
  const piece = 'x'.repeat(64 * 1024)
  // Far more than the system's own buffers take.
  const pieces = 1_000
  const seen = { most: 0, written: 0 }
  const app = express()
  const ended = new Promise<void>((resolve) => {
    app.get('/', async (_request, response) => {
      const stream = openEventStream(response, () => () => undefined)
      const closed = once(response, 'close')
      for (; seen.written < pieces && !response.destroyed; seen.written += 1) {
        stream.data(piece)
        seen.most = Math.max(seen.most, response.writableLength)
        await new Promise<void>((next) => void setImmediate(next))
      }
      response.destroy()
      await closed
      resolve()
    })
  })
  const server = app.listen(0, '127.0.0.1')
  await once(server, 'listening')
  // A TCP server has an address of this kind.
  const socket = connect((server.address() as AddressInfo).port, '127.0.0.1')
  socket.on('error', () => undefined).pause()
  socket.write('GET / HTTP/1.1\r\nHost: x\r\n\r\n')
  await ended
  expect(seen.written).toBeLessThan(pieces)
  expect(seen.most).toBeLessThan(UNREAD_MAX_BYTES + 2 * piece.length)
  socket.destroy()
  server.close()
})
