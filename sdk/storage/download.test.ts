import { createServer, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import type { Piece } from '../core/model/manifest.ts'
import {
  fetchPieces,
  pieceSource,
  type DownloadProgress,
  type DownloadTiming,
  type FetchPiecesRequest,
} from './download.ts'
import { hashBytes } from './hash.ts'
import { createMemoryShardStore } from './memory-shard-store.ts'
import type { ShardStore } from './shard-store.ts'

type Handler = (response: ServerResponse, bytes: Uint8Array, attempt: number) => void

const good: Handler = (response, bytes) => {
  response.writeHead(200, { 'content-type': 'application/octet-stream' })
  response.end(bytes)
}

const status =
  (code: number, headers: Record<string, string> = {}): Handler =>
  (response) => {
    response.writeHead(code, headers)
    response.end('no')
  }

/** One request after the other is answered by the next handler; the last one stays. */
const inTurn =
  (...handlers: Handler[]): Handler =>
  (response, bytes, attempt) => {
    handlers[Math.min(attempt, handlers.length - 1)]?.(response, bytes, attempt)
  }

let server: Server
let handler: Handler
let requests: string[]
let waits: number[]
let store: ShardStore
const contents = new Map<string, Uint8Array>()

const timing: DownloadTiming = {
  wait: (ms) => {
    waits.push(ms)
    return Promise.resolve()
  },
  random: () => 0.5,
}

beforeEach(async () => {
  requests = []
  waits = []
  handler = good
  store = createMemoryShardStore()
  server = createServer((request, response) => {
    const hash = (request.url ?? '').split('/').at(-1) ?? ''
    const attempt = requests.filter((url) => url === request.url).length
    requests.push(request.url ?? '')
    handler(response, contents.get(hash) ?? new Uint8Array(0), attempt)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
})

afterEach(async () => {
  server.closeAllConnections()
  await new Promise((resolve) => server.close(resolve))
})

async function piece(seed: number, size = 3000): Promise<Piece> {
  const bytes = Uint8Array.from({ length: size }, (_, i) => (i * 7 + seed) % 256)
  const sha256 = await hashBytes(bytes)
  contents.set(sha256, bytes)
  return { sha256, bytes: size }
}

function source(name = 'host', path = '/pieces/') {
  const { port } = server.address() as AddressInfo
  return pieceSource(name, `http://127.0.0.1:${port}${path}`)
}

function download(
  pieces: readonly Piece[],
  rest: Partial<FetchPiecesRequest & Pick<DownloadTiming, 'stallMs'>> = {},
): Promise<{ fetchedBytes: number }> {
  const { stallMs = 20_000, ...request } = rest
  return fetchPieces(
    { pieces, store, sources: [source()], fetch, ...request },
    { ...timing, stallMs },
  )
}

async function expectStored(wanted: Piece): Promise<void> {
  expect(await store.read(wanted.sha256)).toEqual(contents.get(wanted.sha256))
}

describe('fetchPieces', () => {
  it('stores every piece, counts bytes and asks for nothing twice', async () => {
    const pieces = await Promise.all([1, 2, 3, 4, 5].map((seed) => piece(seed)))
    const progress: DownloadProgress[] = []
    const onProgress = (step: DownloadProgress): void => {
      progress.push(step)
    }
    const twice = [...pieces, ...pieces]
    expect(await download(twice, { onProgress })).toEqual({ fetchedBytes: 15_000 })
    for (const wanted of pieces) await expectStored(wanted)
    expect(requests).toHaveLength(5)
    expect(progress[0]).toEqual({
      fetchedBytes: 0,
      peerBytes: 0,
      storedBytes: 0,
      totalBytes: 15_000,
    })
    expect(progress.at(-1)).toEqual({
      fetchedBytes: 15_000,
      peerBytes: 0,
      storedBytes: 15_000,
      totalBytes: 15_000,
    })
    expect(await download(pieces)).toEqual({ fetchedBytes: 0 })
    expect(requests).toHaveLength(5)
  })

  it('resumes by piece', async () => {
    const pieces = await Promise.all([1, 2, 3].map((seed) => piece(seed)))
    const last = pieces[2]?.sha256 ?? ''
    handler = (response, bytes, attempt) => {
      if (bytes !== contents.get(last)) {
        good(response, bytes, attempt)
        return
      }
      // A failure stops the others: they must be stored before.
      void vi
        .waitFor(async () => expect(await store.list()).toHaveLength(2), { timeout: 10_000 })
        .then(() => status(404)(response, bytes, attempt))
    }
    await expect(download(pieces)).rejects.toMatchObject({ code: 'piece-unavailable' })
    handler = good
    expect(await store.list()).toHaveLength(2)
    expect(await download(pieces)).toEqual({ fetchedBytes: 3000 })
  })

  it('checks the space first, and says how much is missing', async () => {
    const wanted = await piece(1)
    const small: ShardStore = {
      ...store,
      usage: () => Promise.resolve({ usedBytes: 0, freeBytes: 1000, persistent: true }),
    }
    await expect(download([wanted], { store: small })).rejects.toMatchObject({
      code: 'storage-full',
      message: expect.stringContaining('2000 bytes') as unknown,
    })
    expect(requests).toEqual([])
  })

  it('makes room by deleting what is not wanted, as little as will do', async () => {
    const [kept, wanted] = [await piece(31), await piece(32)]
    const former = [await piece(33), await piece(34), await piece(35)]
    await download([kept, ...former])
    const held = async (pieces: readonly Piece[]) =>
      (await Promise.all(pieces.map(({ sha256 }) => store.has(sha256)))).filter(Boolean).length
    const small: ShardStore = {
      ...store,
      // Room for four pieces and a half.
      usage: async () => {
        const usedBytes = (await store.list()).length * kept.bytes
        return { usedBytes, freeBytes: 4.5 * kept.bytes - usedBytes, persistent: true }
      },
    }
    await expect(download([kept, wanted], { store: small })).rejects.toMatchObject({
      code: 'storage-full',
    })
    expect(await held(former)).toBe(3)
    await download([kept, wanted], { store: small, mayEvict: true })
    expect(await held([kept, wanted])).toBe(2)
    expect(await held(former)).toBe(2)
    await download([kept, wanted], { store: small, mayEvict: true })
    expect(await held(former)).toBe(2)
  })

  it('deletes nothing where that would not make room', async () => {
    const [wanted, former] = [await piece(36), await piece(37)]
    await download([former])
    const { bytes } = former
    const small: ShardStore = {
      ...store,
      usage: () => Promise.resolve({ usedBytes: bytes, freeBytes: -bytes - 1, persistent: true }),
    }
    await expect(download([wanted], { store: small, mayEvict: true })).rejects.toMatchObject({
      code: 'storage-full',
    })
    expect(await store.has(former.sha256)).toBe(true)
  })

  it.each<[string, Handler, RegExp]>([
    [
      'a web page with status 200',
      (response, bytes) => {
        response.writeHead(200, { 'content-type': 'text/html; charset=utf-8' })
        response.end(bytes)
      },
      /web page/,
    ],
    ['a body that is too short', (r, bytes) => r.end(bytes.slice(0, 2000)), /2000/],
    ['a body that is too long', (r, bytes) => r.end(Buffer.concat([bytes, bytes])), /6000/],
    [
      'a long body without a length',
      (response, bytes) => {
        response.write(bytes)
        response.write(bytes)
        response.end()
      },
      /more than the 3000/,
    ],
    [
      'a short body without a length',
      (response, bytes) => {
        response.write(bytes.slice(0, 1234))
        response.end()
      },
      /ended after 1234 of 3000/,
    ],
    [
      'wrong bytes',
      (response, bytes) => response.end(bytes.map((byte, i) => (i === 100 ? byte ^ 4 : byte))),
      /has hash/,
    ],
  ])('refuses %s, and takes the right answer next time', async (_name, bad, message) => {
    const wanted = await piece(9)
    handler = bad
    await expect(download([wanted])).rejects.toMatchObject({
      code: 'piece-corrupt',
      message: expect.stringMatching(message) as unknown,
    })
    expect(requests).toHaveLength(4)
    expect(await store.list()).toEqual([])
    requests = []
    handler = inTurn(bad, good)
    await download([wanted])
    await expectStored(wanted)
    expect(requests).toHaveLength(2)
  })

  it('goes past the cache after a bad answer', async () => {
    const wanted = await piece(10)
    const caches: (string | undefined)[] = []
    handler = inTurn((response) => response.end('x'), good)
    await download([wanted], {
      fetch: (input, init) => {
        caches.push(init?.cache)
        return fetch(input, init)
      },
    })
    expect(caches).toEqual([undefined, 'reload'])
  })

  it('tries a body that breaks off again', async () => {
    const wanted = await piece(11)
    handler = inTurn((response, bytes) => {
      response.writeHead(200, { 'content-length': String(bytes.byteLength) })
      response.write(bytes.slice(0, 1000), () => response.destroy())
    }, good)
    expect(await download([wanted])).toEqual({ fetchedBytes: expect.any(Number) as unknown })
    await expectStored(wanted)
  })

  it('gives up on a source that stalls, at headers or in the body', async () => {
    const wanted = await piece(12)
    handler = inTurn(
      () => undefined,
      (response, bytes) => {
        response.writeHead(200, { 'content-length': String(bytes.byteLength) })
        response.write(bytes.slice(0, 1000))
      },
      good,
    )
    await download([wanted], { stallMs: 400 })
    await expectStored(wanted)
    expect(requests).toHaveLength(3)
    handler = () => undefined
    await expect(download([await piece(13)], { stallMs: 20 })).rejects.toMatchObject({
      code: 'piece-unavailable',
      message: expect.stringContaining('too long') as unknown,
    })
  })

  it('waits longer each time, and as long as the server asks', async () => {
    handler = status(503)
    await expect(download([await piece(14)])).rejects.toMatchObject({
      code: 'piece-unavailable',
      message: expect.stringContaining('503') as unknown,
    })
    expect(waits).toEqual([225, 450, 900])
    waits = []
    const date = new Date(Date.now() + 5000).toUTCString()
    handler = inTurn(
      status(429, { 'retry-after': '3' }),
      status(429, { 'retry-after': date }),
      status(429, { 'retry-after': '99999' }),
      good,
    )
    await download([await piece(15)])
    expect(waits[0]).toBe(3000)
    expect(waits[1]).toBeGreaterThan(3000)
    expect(waits[1]).toBeLessThanOrEqual(5000)
    expect(waits[2]).toBe(15_000)
  })

  it('takes a bad piece from the next source', async () => {
    const wanted = await piece(16)
    const sources = [source('bad', '/bad/'), source('good', '/good/')]
    handler = (response, bytes) => {
      const isBad = (requests.at(-1) ?? '').startsWith('/bad/')
      response.end(isBad ? bytes.toReversed() : bytes)
    }
    await download([wanted], { sources })
    await expectStored(wanted)
    expect(requests.map((url) => url.split('/')[1])).toEqual(['bad', 'good'])
  })

  it('does not ask again where the piece is not', async () => {
    handler = status(404)
    await expect(download([await piece(17)])).rejects.toMatchObject({ code: 'piece-unavailable' })
    expect(requests).toHaveLength(1)
  })

  it('says when no source answers at all', async () => {
    const sources = [pieceSource('nobody', 'http://127.0.0.1:9/')]
    await expect(download([await piece(18)], { sources })).rejects.toMatchObject({
      code: 'piece-unavailable',
      message: expect.stringContaining('nobody') as unknown,
    })
    await expect(download([await piece(18)], { sources: [] })).rejects.toMatchObject({
      code: 'piece-unavailable',
    })
  })

  it('stops at once when told to, and keeps what is stored', async () => {
    const [first, second] = [await piece(19), await piece(20)]
    await download([first])
    const stop = new AbortController()
    handler = (response, bytes) => {
      response.write(bytes.slice(0, 10), () => stop.abort())
    }
    const signal = stop.signal
    await expect(download([first, second], { signal })).rejects.toMatchObject({ code: 'aborted' })
    expect(await store.list()).toEqual([first.sha256])
    await expect(download([second], { signal: AbortSignal.abort() })).rejects.toMatchObject({
      code: 'aborted',
    })
  })

  it('refuses a piece of impossible size before anything is allocated', async () => {
    const { sha256 } = await piece(21)
    await expect(download([{ sha256, bytes: 2 ** 40 }])).rejects.toMatchObject({
      code: 'model-invalid',
    })
    expect(requests).toEqual([])
  })

  it('passes on a store that is full', async () => {
    const { CrowdError } = await import('../core/errors.ts')
    const full: ShardStore = {
      ...store,
      write: () => Promise.reject(new CrowdError('storage-full', 'full')),
    }
    await expect(download([await piece(22)], { store: full })).rejects.toMatchObject({
      code: 'storage-full',
    })
  })
})
