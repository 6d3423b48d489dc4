import { createHash } from 'node:crypto'
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import { send, sendFile, sendJson } from './hub-sending.ts'

/** A file of the fake hub: bytes, or a size and a rule for the byte at each offset, so that it may be huge. */
export type FakeFile = {
  readonly bytes: number
  readonly read: (start: number, end: number) => Buffer
  readonly sha256: string
  readonly gitSha1: string
  /** Large files are stored apart: a redirect to the second port. */
  readonly isLarge: boolean
}

export type FakeRepo = {
  readonly commit: string
  readonly branches?: readonly string[]
  readonly files: Readonly<Record<string, FakeFile>>
  readonly access?: 'open' | 'gated' | 'private'
}

export type HubRequest = {
  /** The hub, or the second port that it redirects to. */
  readonly server: 'hub' | 'storage'
  readonly path: string
  readonly range: string | null
  readonly authorization: string | null
}

export type HubFault =
  | { readonly kind: 'status'; readonly status: number; readonly headers?: Record<string, string> }
  /** The whole file with 200 where a range was asked for. */
  | { readonly kind: 'no-range' }
  /** On-the-fly compression: no Content-Length. */
  | { readonly kind: 'gzip' }
  /** Says the full length and hangs up half-way. */
  | { readonly kind: 'truncated' }
  /** Ends half-way as if that were all. */
  | { readonly kind: 'short' }
  | { readonly kind: 'wrong-byte' }
  /** Half of the body, then silence. */
  | { readonly kind: 'stalled' }
  | { readonly kind: 'web-page' }
  /** The right bytes of another range. */
  | { readonly kind: 'shifted' }
  /** The hub's own headers tell of another commit. */
  | { readonly kind: 'other-commit' }
  | { readonly kind: 'redirect'; readonly location: string }

export type HubServer = {
  readonly url: URL
  readonly storageUrl: URL
  readonly requests: HubRequest[]
  /** The first matching fault is used up by a request; `times` is 1 unless given. */
  fault(match: (request: HubRequest) => boolean, fault: HubFault, times?: number): void
  /** Signed addresses that were given so far are refused from now on. */
  expireAddresses(): void
  close(): Promise<void>
}

export const HUB_TOKEN = 'hf_tokenForTests'
const TREE_PAGE = 3
/** At once of a pattern. */
const CHUNK_BYTES = 256 * 1024

export function fakeFile(content: string | Uint8Array, isLarge = false): FakeFile {
  const bytes = Buffer.from(content)
  return {
    bytes: bytes.length,
    read: (start, end) => bytes.subarray(start, end),
    sha256: createHash('sha256').update(bytes).digest('hex'),
    gitSha1: createHash('sha1').update(`blob ${bytes.length}\0`).update(bytes).digest('hex'),
    isLarge,
  }
}

/** A large file whose bytes are a pattern: it costs no memory. */
export function patternFile(bytes: number): FakeFile {
  // A prime length, so that no piece begins like another.
  const period = Buffer.from(
    Uint8Array.from({ length: 65_521 }, (_, index) => (index * index * 31) >> 8),
  )
  const tiled = Buffer.concat([period, ...Array.from({ length: 5 }, () => period)])
  const read = (start: number, end: number): Buffer => {
    const from = start % period.length
    return tiled.subarray(from, from + (end - start))
  }
  const hash = createHash('sha256')
  for (let at = 0; at < bytes; at += CHUNK_BYTES) {
    hash.update(read(at, Math.min(bytes, at + CHUNK_BYTES)))
  }
  return { bytes, read, sha256: hash.digest('hex'), gitSha1: '0'.repeat(40), isLarge: true }
}

/** A hub on this machine that answers as the real one does, and misbehaves where it's told to. */
export async function startHubServer(
  repos: Readonly<Record<string, FakeRepo>>,
): Promise<HubServer> {
  const requests: HubRequest[] = []
  const faults: { match: (request: HubRequest) => boolean; fault: HubFault; times: number }[] = []
  let generation = 0

  function note(server: HubRequest['server'], request: IncomingMessage): HubFault | null {
    const { range = null, authorization = null } = request.headers
    const noted = { server, path: request.url ?? '', range, authorization }
    requests.push(noted)
    const found = faults.find(({ match, times }) => times > 0 && match(noted))
    if (found === undefined) return null
    found.times -= 1
    return found.fault
  }

  const storage = createServer((request, response) => {
    const fault = note('storage', request)
    const url = new URL(request.url ?? '/', 'http://storage')
    const file = fileAt(repos, url.searchParams.get('file') ?? '')
    if (url.searchParams.get('signed') !== String(generation) || file === null) {
      send(response, 403, { 'content-type': 'application/xml' }, '<Error>AccessDenied</Error>')
      return
    }
    // Nothing here tells of the hub's headers, and the ETag is another hash.
    void sendFile(request, response, { file, fault, headers: { etag: '"xet-hash"' } })
  })
  const hub = createServer((request, response) => {
    const fault = note('hub', request)
    void answerHub({
      request,
      response,
      fault,
      repos,
      origin: () => `${storageUrl.origin}/?signed=${generation}`,
    })
  })
  const url = await listen(hub)
  const storageUrl = await listen(storage)
  return {
    url,
    storageUrl,
    requests,
    fault: (match, fault, times = 1) => void faults.push({ match, fault, times }),
    expireAddresses: () => void (generation += 1),
    async close() {
      for (const server of [hub, storage]) {
        server.closeAllConnections()
        await new Promise((done) => server.close(done))
      }
    },
  }
}

type Exchange = {
  readonly request: IncomingMessage
  readonly response: ServerResponse
  readonly fault: HubFault | null
  readonly repos: Readonly<Record<string, FakeRepo>>
  readonly origin: () => string
}

const API = /^\/api\/models\/([^/]+\/[^/]+)\/(revision|tree)\/([^/]+)$/
const CACHED = /^\/api\/resolve-cache\/models\/([^/]+\/[^/]+)\/([^/]+)\/(.+)$/
const RESOLVE = /^\/([^/]+\/[^/]+)\/resolve\/([^/]+)\/(.+)$/

async function answerHub(exchange: Exchange): Promise<void> {
  const { request, response, fault } = exchange
  const url = new URL(request.url ?? '/', 'http://hub')
  if (sendFault(response, fault)) return
  for (const [pattern, answer] of [
    [API, answerApi],
    [CACHED, answerCached],
    [RESOLVE, answerResolve],
  ] as const) {
    const [, name = '', middle = '', last = ''] = pattern.exec(url.pathname) ?? []
    if (name === '') continue
    const repo = exchange.repos[name]
    const refusal = refusalOf(repo, request.headers.authorization)
    if (refusal !== null) sendCode(response, refusal)
    else if (repo)
      await answer(exchange, { repo, name, middle, last: decodeURIComponent(last), url })
    return
  }
  send(response, 404, {}, '')
}

function sendFault(response: ServerResponse, fault: HubFault | null): boolean {
  if (fault?.kind === 'status') send(response, fault.status, fault.headers ?? {}, '{}')
  else if (fault?.kind === 'redirect') send(response, 302, { location: fault.location }, '')
  else return false
  return true
}

type Found = {
  readonly repo: FakeRepo
  readonly name: string
  readonly middle: string
  readonly last: string
  readonly url: URL
}

function knows(repo: FakeRepo, revision: string): boolean {
  return [repo.commit, ...(repo.branches ?? ['main'])].includes(revision)
}

function answerApi({ response }: Exchange, { repo, middle, last, url }: Found): void {
  if (!knows(repo, last)) sendCode(response, [404, 'RevisionNotFound'])
  else if (middle === 'tree') sendTree(response, url, repo)
  else sendJson(response, { sha: repo.commit, gated: false })
}

async function answerCached(exchange: Exchange, { repo, last }: Found): Promise<void> {
  const { request, response, fault } = exchange
  const file = repo.files[last]
  if (!file) sendCode(response, [404, 'EntryNotFound'])
  else await sendFile(request, response, { file, fault, headers: { etag: `"${file.gitSha1}"` } })
}

function answerResolve(exchange: Exchange, { repo, name, middle, last }: Found): void {
  const { response } = exchange
  if (!knows(repo, decodeURIComponent(middle))) sendCode(response, [404, 'RevisionNotFound'])
  else sendResolve(exchange, { repo, name, path: last })
}

function sendCode(response: ServerResponse, [status, code]: readonly [number, string]): void {
  send(response, status, { 'x-error-code': code }, '{"error":"no"}')
}

function refusalOf(
  repo: FakeRepo | undefined,
  authorization = '',
): readonly [number, string] | null {
  const isKnown = authorization === `Bearer ${HUB_TOKEN}`
  // A stranger can't tell a repository that isn't there from a private one.
  if (repo === undefined) return isKnown ? [404, 'RepoNotFound'] : [401, 'RepoNotFound']
  if (isKnown || repo.access === undefined || repo.access === 'open') return null
  return repo.access === 'gated' ? [403, 'GatedRepo'] : [401, 'RepoNotFound']
}

function sendTree(response: ServerResponse, url: URL, repo: FakeRepo): void {
  const all = Object.entries(repo.files).map(([path, file]) => ({
    type: 'file',
    path,
    size: file.bytes,
    oid: file.isLarge ? '1'.repeat(40) : file.gitSha1,
    ...(file.isLarge ? { lfs: { oid: file.sha256, size: file.bytes, pointerSize: 134 } } : {}),
  }))
  const from = Number(url.searchParams.get('cursor') ?? 0)
  const page = [
    { type: 'directory', path: 'onnx', size: 0, oid: '2'.repeat(40) },
    ...all.slice(from, from + TREE_PAGE),
  ]
  const more = from + TREE_PAGE < all.length
  const next = `<${url.pathname}?recursive=true&cursor=${from + TREE_PAGE}>; rel="next"`
  sendJson(response, page, more ? { link: next } : {})
}

function sendResolve(
  { request, response, fault, origin }: Exchange,
  what: { readonly repo: FakeRepo; readonly name: string; readonly path: string },
): void {
  const { repo, name, path } = what
  const file = repo.files[path]
  if (file === undefined) {
    sendCode(response, [404, 'EntryNotFound'])
    return
  }
  const commit = fault?.kind === 'other-commit' ? 'f'.repeat(40) : repo.commit
  const headers = {
    'x-repo-commit': commit,
    'x-linked-size': String(file.bytes),
    'x-linked-etag': `"${file.isLarge ? file.sha256 : file.gitSha1}"`,
    'accept-ranges': 'bytes',
  }
  const location = file.isLarge
    ? `${origin()}&file=${encodeURIComponent(`${name}/${path}`)}`
    : `/api/resolve-cache/models/${name}/${repo.commit}/${path}?etag=1`
  send(
    response,
    file.isLarge ? 302 : 307,
    { ...headers, location },
    `Redirecting for ${request.method ?? ''}`,
  )
}

function fileAt(repos: Readonly<Record<string, FakeRepo>>, name: string): FakeFile | null {
  const [, repo = '', path = ''] = /^([^/]+\/[^/]+)\/(.+)$/.exec(name) ?? []
  return repos[repo]?.files[path] ?? null
}

async function listen(server: Server): Promise<URL> {
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done))
  const address = server.address()
  if (address === null || typeof address === 'string') throw new Error('no port')
  return new URL(`http://127.0.0.1:${address.port}/`)
}
