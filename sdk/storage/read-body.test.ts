import { describe, expect, it } from 'vitest'
import type { Piece } from '../core/model/manifest.ts'
import { fetchText } from '../fetch-text.ts'
import { fetchPiece } from './fetch-piece.ts'
import { hashBytes } from './hash.ts'
import { readBody } from './read-body.ts'

const SENT = Uint8Array.of(1, 2, 3)

/** Sends a few bytes and then nothing more, whoever aborts: what fetch now and then does. */
function silentBody(): { body: ReadableStream<Uint8Array<ArrayBuffer>>; isGivenUp: () => boolean } {
  let givenUp = false
  const body = new ReadableStream<Uint8Array<ArrayBuffer>>(
    {
      start: (stream) => stream.enqueue(SENT),
      cancel: () => {
        givenUp = true
      },
    },
    { highWaterMark: 0 },
  )
  return { body, isGivenUp: () => givenUp }
}

async function pieceOf(bytes: number): Promise<Piece> {
  return { sha256: await hashBytes(SENT), bytes }
}

describe('reading a body that does not hear of its end', () => {
  it('ends with the reason of the signal, and gives the connection up', async () => {
    const { body, isGivenUp } = silentBody()
    const stop = new AbortController()
    const read = async (): Promise<void> => {
      for await (const bytes of readBody(body, stop.signal)) {
        expect(bytes).toEqual(SENT)
        setImmediate(() => stop.abort(new Error('enough')))
      }
    }
    await expect(read()).rejects.toThrow('enough')
    expect(isGivenUp()).toBe(true)
  })

  it('gives the connection up where the reader leaves', async () => {
    const { body, isGivenUp } = silentBody()
    const { signal } = new AbortController()
    for await (const bytes of readBody(body, signal)) if (bytes.length > 0) break
    expect(isGivenUp()).toBe(true)
  })

  it('stops the download of a piece, on request or after a pause that is too long', async () => {
    const stop = new AbortController()
    const answer = (): Promise<Response> => Promise.resolve(new Response(silentBody().body))
    const deps = { fetch: answer, fresh: false, stallMs: 20_000 }
    const onBytes = (): void => void setImmediate(() => stop.abort())
    const wanted = await pieceOf(10)
    await expect(
      fetchPiece(wanted, 'http://host/piece', { ...deps, signal: stop.signal, onBytes }),
    ).rejects.toMatchObject({ code: 'aborted' })
    const { signal } = new AbortController()
    const stalled = { ...deps, stallMs: 20, signal, onBytes: () => undefined }
    expect(await fetchPiece(wanted, 'http://host/piece', stalled)).toMatchObject({
      kind: 'failed',
      reason: 'no bytes came for too long',
    })
  })

  it('stops the download of a text', async () => {
    const stop = new AbortController()
    const { body, isGivenUp } = silentBody()
    const fetch = (): Promise<Response> => {
      setImmediate(() => stop.abort())
      return Promise.resolve(new Response(body))
    }
    const timing = { random: () => 0, wait: () => Promise.resolve() }
    const options = { what: 'it', maxChars: 100, signal: stop.signal }
    await expect(
      fetchText(new URL('http://host/text'), { fetch, timing }, options),
    ).rejects.toMatchObject({ code: 'aborted' })
    expect(isGivenUp()).toBe(true)
  })

  it('reads no more of a text than it may have', async () => {
    const { body, isGivenUp } = silentBody()
    const timing = { random: () => 0, wait: () => Promise.resolve() }
    const fetch = (): Promise<Response> => Promise.resolve(new Response(body))
    await expect(
      fetchText(new URL('http://host/text'), { fetch, timing }, { what: 'it', maxChars: 2 }),
    ).rejects.toThrow('larger than it may be')
    expect(isGivenUp()).toBe(true)
  })
})
