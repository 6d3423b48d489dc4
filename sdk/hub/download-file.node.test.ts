import { mkdtemp, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { COMMIT, testHub } from '../../test/support/hub-kit.ts'
import {
  fakeFile,
  HUB_TOKEN,
  patternFile,
  startHubServer,
  type HubFault,
  type HubRequest,
  type HubServer,
} from '../../test/support/hub-server.ts'
import { downloadFile, type DownloadFileRequest } from './download-file.node.ts'
import { listHubFiles, type HubListing } from './hub-files.ts'
import type { HubOptions } from './hub-options.ts'

const LARGE = patternFile(1_000_000)
const PIECE = 100_000
const FILES = {
  'model.safetensors': LARGE,
  'config.json': fakeFile('{"model_type": "llama"}'),
  'empty.txt': fakeFile(''),
  'tokenizer.json': fakeFile('x'.repeat(150_000)),
}

let hub: HubServer
let folder: string
let listing: HubListing

beforeEach(async () => {
  hub = await startHubServer({
    'org/open': { commit: COMMIT, files: FILES },
    'org/gated': { commit: COMMIT, files: FILES, access: 'gated' },
  })
  folder = await mkdtemp(join(tmpdir(), 'crowdinfer-hub-'))
  listing = await listHubFiles(testHub(hub), { repo: 'org/open', revision: null }, signalOf())
  hub.requests.length = 0
})

afterEach(async () => {
  await hub.close()
  await rm(folder, { recursive: true, force: true })
})

function signalOf(): AbortSignal {
  return new AbortController().signal
}

type Change = Partial<DownloadFileRequest> & {
  readonly options?: HubOptions
  readonly path?: string
}

async function download({ options = testHub(hub), path = 'model.safetensors', ...change }: Change) {
  const file = listing.files.find((one) => one.path === path)
  if (!file) throw new Error(`no ${path}`)
  const target = join(folder, path)
  let bytes = 0
  const request = { listing, file, target, signal: signalOf(), pieceBytes: PIECE, parallel: 3 }
  const onBytes = (delta: number) => void (bytes += delta)
  await downloadFile(options, { ...request, onBytes, ...change })
  return { bytes: await readFile(target), counted: bytes }
}

const content = whole()

function whole(): Buffer {
  const parts: Buffer[] = []
  for (let at = 0; at < LARGE.bytes; at += 200_000) {
    parts.push(Buffer.from(LARGE.read(at, Math.min(LARGE.bytes, at + 200_000))))
  }
  return Buffer.concat(parts)
}

const fromStorage = (request: HubRequest): boolean => request.server === 'storage'
const thirdPiece = (request: HubRequest): boolean =>
  fromStorage(request) && request.range === `bytes=${2 * PIECE}-${3 * PIECE - 1}`

test('a large file comes in ranges from the address that the hub gave, asked for once', async () => {
  const { bytes, counted } = await download({ parallel: 1 })
  expect(bytes.equals(content)).toBe(true)
  expect(counted).toBe(LARGE.bytes)
  expect(hub.requests.filter(({ server }) => server === 'hub')).toHaveLength(1)
  const ranges = hub.requests.filter(fromStorage).map(({ range }) => range)
  expect(ranges).toHaveLength(10)
  expect(ranges[0]).toBe(`bytes=0-${PIECE - 1}`)
  expect(await readdir(folder)).toEqual(['model.safetensors'])
})

test('small files come by a relative redirect; an empty one costs no request', async () => {
  expect((await download({ path: 'config.json' })).bytes.toString()).toBe('{"model_type": "llama"}')
  expect((await download({ path: 'tokenizer.json' })).bytes).toHaveLength(150_000)
  hub.requests.length = 0
  expect((await download({ path: 'empty.txt' })).bytes).toHaveLength(0)
  expect(hub.requests).toEqual([])
})

test('what is in place is not asked for again', async () => {
  await download({})
  hub.requests.length = 0
  expect((await download({})).counted).toBe(LARGE.bytes)
  expect(hub.requests).toEqual([])
})

/** Faults that pass: the bytes are right in the end. */
const PASSING: readonly (readonly [string, HubFault, number])[] = [
  ['a body that hangs up half-way', { kind: 'truncated' }, 1],
  ['a body that is short', { kind: 'short' }, 1],
  ['a stalled body', { kind: 'stalled' }, 1],
  ['a web page in place of the file', { kind: 'web-page' }, 1],
  ['another range than asked for', { kind: 'shifted' }, 1],
  ['200 in place of 206', { kind: 'no-range' }, 1],
  ['200 for every range', { kind: 'no-range' }, Infinity],
  ['compression without a length', { kind: 'gzip' }, Infinity],
  ['a wrong byte', { kind: 'wrong-byte' }, 1],
  ['a failing server', { kind: 'status', status: 503 }, 3],
  ['an address that expired', { kind: 'status', status: 403 }, 1],
  ['416 once', { kind: 'status', status: 416 }, 1],
]

test.each(PASSING)('%s does no harm', async (_, fault, times) => {
  const match = times === Infinity ? fromStorage : thirdPiece
  hub.fault(match, fault, times)
  const options = testHub(hub)
  const timing = { ...options.timing, stallMs: 300 }
  const { bytes, counted } = await download({ options: { ...options, timing } })
  expect(bytes.equals(content)).toBe(true)
  expect(counted).toBe(LARGE.bytes)
  expect(await readdir(folder)).toEqual(['model.safetensors'])
})

/** Faults that stay: an error in plain words, and no file in place. */
const LASTING: readonly (readonly [string, HubFault, string, RegExp])[] = [
  ['truncated', { kind: 'truncated' }, 'hub-unavailable', /hung up/],
  ['short', { kind: 'short' }, 'download-corrupt', /fewer bytes/],
  ['stalled', { kind: 'stalled' }, 'hub-unavailable', /nothing for too long/],
  ['a web page', { kind: 'web-page' }, 'download-corrupt', /web page/],
  ['another range', { kind: 'shifted' }, 'download-corrupt', /gave the range/],
  ['a wrong byte', { kind: 'wrong-byte' }, 'download-corrupt', /hash/],
  ['416', { kind: 'status', status: 416 }, 'download-corrupt', /ends earlier/],
  ['a failing server', { kind: 'status', status: 500 }, 'hub-unavailable', /500/],
  ['refused addresses', { kind: 'status', status: 403 }, 'hub-unavailable', /refuses the address/],
]

test.each(LASTING)('%s that stays is an error', async (_, fault, code, text) => {
  hub.fault(fromStorage, fault, Infinity)
  const options = testHub(hub)
  const timing = { ...options.timing, stallMs: 100 }
  await expect(download({ options: { ...options, timing } })).rejects.toMatchObject({
    code,
    message: expect.stringMatching(text) as unknown,
  })
  expect(await readdir(folder)).not.toContain('model.safetensors')
})

test('wrong bytes that stay leave nothing to go on with', async () => {
  hub.fault(fromStorage, { kind: 'wrong-byte' }, Infinity)
  await expect(download({})).rejects.toMatchObject({ code: 'download-corrupt' })
  expect(await readdir(folder)).toEqual([])
  // All pieces twice.
  expect(hub.requests.filter(fromStorage)).toHaveLength(20)
})

test('a stopped download goes on with the pieces that are missing', async () => {
  const stop = new AbortController()
  let seen = 0
  const onBytes = (delta: number): void => {
    seen += delta
    if (seen >= 6 * PIECE) stop.abort()
  }
  const stopped = download({ signal: stop.signal, onBytes, parallel: 2 })
  await expect(stopped).rejects.toMatchObject({ code: 'aborted' })
  const before = hub.requests.filter(fromStorage).length
  expect(before).toBeGreaterThanOrEqual(6)
  hub.requests.length = 0
  const { bytes, counted } = await download({})
  expect(bytes.equals(content)).toBe(true)
  expect(counted).toBe(LARGE.bytes)
  // Two may have been on their way.
  expect(hub.requests.filter(fromStorage).length).toBeLessThanOrEqual(10 - 6 + 2)
  expect(await readdir(folder)).toEqual(['model.safetensors'])
})

test('a journal of another file, a cut-off line or a missing part cost a download, never the bytes', async () => {
  const part = join(folder, 'model.safetensors.part')
  await writeFile(
    `${part}.journal`,
    `${JSON.stringify({ bytes: 1, hash: 'x', pieceBytes: PIECE })}\n0\n1\n`,
  )
  expect((await download({})).bytes.equals(content)).toBe(true)
  await rm(join(folder, 'model.safetensors'))
  const head = JSON.stringify({ bytes: LARGE.bytes, hash: LARGE.sha256, pieceBytes: PIECE })
  await writeFile(`${part}.journal`, `${head}\n0\n1\n999999\n`)
  expect((await download({})).bytes.equals(content)).toBe(true)
  await rm(join(folder, 'model.safetensors'))
  // The journal vouches for a piece that holds zeros: the hash finds it.
  await writeFile(part, Buffer.alloc(LARGE.bytes))
  await writeFile(`${part}.journal`, `${head}\n0\n1`)
  expect((await download({})).bytes.equals(content)).toBe(true)
})

test('an address that expires between two pieces is asked for anew, without a pause', async () => {
  let expired = false
  const onBytes = (): void => {
    if (!expired) hub.expireAddresses()
    expired = true
  }
  const options = testHub(hub)
  expect((await download({ options, parallel: 1, onBytes })).bytes.equals(content)).toBe(true)
  expect(hub.requests.filter(({ server }) => server === 'hub')).toHaveLength(2)
  expect(options.waits).toEqual([])
})

test('too many requests are waited out as the hub asks, and said', async () => {
  const limit = {
    kind: 'status',
    status: 429,
    headers: { ratelimit: '"resolvers";r=0;t=123' },
  } as const
  hub.fault(({ server }) => server === 'hub', limit)
  const retryAfter = { kind: 'status', status: 429, headers: { 'retry-after': '7' } } as const
  hub.fault(({ server }) => server === 'hub', retryAfter)
  const options = testHub(hub)
  expect((await download({ options, parallel: 1 })).bytes.equals(content)).toBe(true)
  expect(options.waits).toEqual([123_000, 7_000])
  expect(options.notices[0]).toMatch(/too many requests.*123 s/)
})

test('a wait beyond the cap is an error that tells how long', async () => {
  const limit = { kind: 'status', status: 429, headers: { 'retry-after': '3600' } } as const
  hub.fault(({ server }) => server === 'hub', limit, Infinity)
  await expect(download({})).rejects.toMatchObject({
    code: 'hub-unavailable',
    message: expect.stringMatching(/3600 s/) as unknown,
  })
})

test('the token goes to the hub and to nobody else', async () => {
  const options = testHub(hub, { token: HUB_TOKEN })
  listing = await listHubFiles(options, { repo: 'org/gated', revision: null }, signalOf())
  await download({ options })
  const bearer = `Bearer ${HUB_TOKEN}`
  for (const { server, authorization } of hub.requests) {
    expect(authorization).toBe(server === 'hub' ? bearer : null)
  }
  expect(hub.requests.some(fromStorage)).toBe(true)
})

test('a redirect to another port loses the token too', async () => {
  const options = testHub(hub, { token: HUB_TOKEN })
  const elsewhere = { kind: 'redirect', location: `${hub.storageUrl.href}?x=1` } as const
  hub.fault(({ server }) => server === 'hub', elsewhere, Infinity)
  const failed = download({ options })
  await expect(failed).rejects.toMatchObject({ code: 'hub-unavailable' })
  await expect(failed).rejects.not.toThrow(HUB_TOKEN)
  expect(hub.requests.filter(fromStorage).map(({ authorization }) => authorization)).not.toContain(
    `Bearer ${HUB_TOKEN}`,
  )
})

test('redirects in a circle end', async () => {
  const circle = { kind: 'redirect', location: '/again' } as const
  hub.fault(({ server }) => server === 'hub', circle, Infinity)
  await expect(download({})).rejects.toThrow(/redirects without an end/)
})

test('another commit than the pinned one is refused', async () => {
  hub.fault(({ server }) => server === 'hub', { kind: 'other-commit' }, Infinity)
  await expect(download({})).rejects.toMatchObject({ code: 'download-corrupt' })
})

test('a hub that is gone is named', async () => {
  await hub.close()
  const failed = download({})
  await expect(failed).rejects.toMatchObject({ code: 'hub-unavailable' })
  await expect(failed).rejects.toThrow(hub.url.host)
  await expect(stat(join(folder, 'model.safetensors'))).rejects.toThrow()
})
