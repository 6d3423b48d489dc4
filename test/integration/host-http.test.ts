import { mkdtemp, readFile, rm, stat } from 'node:fs/promises'
import { get as plainGet } from 'node:http'
import { request } from 'node:https'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { parseConfig } from '../../signaling/config.ts'
import { createHost } from '../../signaling/server.ts'
import { startTestHost, testDeps, type TestHost } from '../support/host-on-disk.ts'

describe('what the host serves', () => {
  let host: TestHost
  beforeAll(async () => {
    host = await startTestHost()
  })
  afterAll(async () => {
    await host.close()
  })
  const get = (path: string, headers: Record<string, string> = {}) =>
    fetch(host.origin + path, { headers })
  const pieceUrl = (hash: string = host.piece.hash) => `/models/test-model/pieces/${hash}`

  test('pages, each under its short path', async () => {
    for (const [path, title] of [
      ['/', 'index'],
      ['/join', 'join'],
      ['/dashboard', 'dashboard'],
    ] as const) {
      const response = await get(path)
      expect(response.status).toBe(200)
      expect(response.headers.get('content-type')).toMatch(/^text\/html/)
      expect(await response.text()).toContain(title)
    }
  })

  test('isolation and content policy on pages and on scripts', async () => {
    for (const path of ['/', '/assets/app-1234.js', '/assets/ort-1234.wasm']) {
      const { headers } = await get(path)
      expect(headers.get('cross-origin-opener-policy')).toBe('same-origin')
      expect(headers.get('cross-origin-embedder-policy')).toBe('require-corp')
      expect(headers.get('x-content-type-options')).toBe('nosniff')
      const policy = headers.get('content-security-policy') ?? ''
      expect(policy).toContain("script-src 'self' 'wasm-unsafe-eval'")
      expect(policy).not.toMatch(/script-src[^;]*'unsafe-(inline|eval)'/)
      expect(headers.get('x-powered-by')).toBeNull()
    }
  })

  test('types and caching of built files', async () => {
    const script = await get('/assets/app-1234.js')
    expect(script.headers.get('content-type')).toMatch(/javascript/)
    expect(script.headers.get('cache-control')).toContain('immutable')
    const wasm = await get('/assets/ort-1234.wasm')
    expect(wasm.headers.get('content-type')).toBe('application/wasm')
  })

  test('the manifest is JSON and asked for again each time', async () => {
    const response = await get('/models/test-model/manifest.json')
    expect(response.headers.get('content-type')).toMatch(/^application\/json/)
    expect(response.headers.get('cache-control')).toBe('no-cache')
    expect(await response.json()).toMatchObject({ id: 'test-model', format: 1 })
  })

  test('a piece comes whole, immutable, uncompressed and with its length', async () => {
    const response = await get(pieceUrl(), { 'accept-encoding': 'gzip, br' })
    expect(response.status).toBe(200)
    expect(response.headers.get('content-type')).toBe('application/octet-stream')
    expect(response.headers.get('content-length')).toBe(String(host.piece.bytes.length))
    expect(response.headers.get('content-encoding')).toBeNull()
    expect(response.headers.get('cache-control')).toMatch(/max-age=31536000, immutable/)
    expect(response.headers.get('cross-origin-resource-policy')).toBe('cross-origin')
    expect(response.headers.get('accept-ranges')).toBe('bytes')
    expect(new Uint8Array(await response.arrayBuffer())).toEqual(host.piece.bytes)
  })

  test('a piece comes in ranges, and not at all when it is known', async () => {
    const part = await get(pieceUrl(), { range: 'bytes=100-199' })
    expect(part.status).toBe(206)
    expect(part.headers.get('content-range')).toBe('bytes 100-199/5000')
    expect(new Uint8Array(await part.arrayBuffer())).toEqual(host.piece.bytes.slice(100, 200))
    expect((await get(pieceUrl(), { range: 'bytes=9000-' })).status).toBe(416)
    const tag = (await get(pieceUrl())).headers.get('etag') ?? ''
    expect(tag).toContain(host.piece.hash)
    expect(await statusWithTag(host.origin + pieceUrl(), tag)).toBe(304)
  })

  test('what is not there is a 404 in JSON, never a page', async () => {
    for (const path of [
      pieceUrl('0'.repeat(64)),
      pieceUrl('..%2Fmanifest.json'),
      '/models/other/manifest.json',
      `/models/other/pieces/${host.piece.hash}`,
      '/no/such/page',
      '/assets/missing.js',
      '/index',
    ]) {
      const response = await get(path)
      expect([response.status, path]).toEqual([404, path])
      expect(response.headers.get('content-type')).toMatch(/^application\/json/)
      expect(response.headers.get('cache-control')).toBe('no-store')
      expect(await response.json()).toMatchObject({ error: { code: 'bad-request' } })
    }
  })

  test('a piece whose file is gone is a 404 that nobody caches', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'crowdinfer-host-'))
    const { deps, piece } = await testDeps(folder)
    const own = createHost(parseConfig({ port: '0', host: '127.0.0.1', data: folder }), deps)
    const { port } = await own.start()
    await rm(join(folder, 'model', 'pieces', piece.hash))
    const response = await fetch(`http://127.0.0.1:${port}${pieceUrl(piece.hash)}`)
    expect(response.status).toBe(404)
    expect(response.headers.get('cache-control')).toBe('no-store')
    expect(response.headers.get('etag')).not.toContain(piece.hash)
    await own.close()
    await rm(folder, { recursive: true, force: true })
  })

  test('a broken path is refused in JSON', async () => {
    const response = await get('/models/%E0%A4%A/manifest.json')
    expect(response.status).toBe(400)
    expect(await response.json()).toMatchObject({ error: { code: 'bad-request' } })
  })

  test('health and the swarm, with names only for those who know the secret', async () => {
    const health = await get('/healthz')
    expect(health.status).toBe(503)
    expect(await health.json()).toMatchObject({ ok: false, complete: false })
    const handle = host.host
      .service()
      .join(
        { peer: 'p1' as never, name: 'Ada’s phone', role: 'worker' },
        { send: () => undefined, sendRelay: () => undefined, close: () => undefined },
      )
    const text = await (await get('/api/swarm')).text()
    expect(text).not.toContain('Ada')
    expect(text).not.toContain(host.started.secret)
    const authorization = `Bearer ${host.started.secret ?? ''}`
    expect(await (await get('/api/swarm', { authorization })).text()).toContain('Ada’s phone')
    handle.receive({ kind: 'leave' })
  })

  test('pages learn where other devices reach the host, without the secret', async () => {
    const open = await startTestHost({ host: '0.0.0.0' })
    const { origins } = open.host.service().snapshot()
    expect(origins).toEqual([`http://192.168.1.20:${open.started.port}`])
    const text = await (await fetch(`${open.origin}/api/swarm`)).text()
    expect(text).not.toContain('192.168.1.20')
    await open.close()
  })
})

describe('starting and stopping', () => {
  test('the secret is private, survives a restart, and an open pool has none', async () => {
    const first = await startTestHost()
    const { secret } = first.started
    expect(secret).toMatch(/^[\w-]{22}$/)
    const file = join(first.dataDir, 'pool-secret')
    expect((await stat(file)).mode & 0o077).toBe(0)
    expect((await readFile(file, 'utf8')).trim()).toBe(secret)
    expect(first.started.urls.join).toBe(`http://localhost:${first.started.port}/join#s=${secret}`)
    await first.host.close()
    const second = createHost(
      parseConfig({ port: '0', host: '127.0.0.1', data: first.dataDir }),
      (await testDeps(join(first.dataDir, 'again'))).deps,
    )
    expect((await second.start()).secret).toBe(secret)
    await second.close()
    await first.close()
    const open = await startTestHost({ public: true })
    expect(open.started.secret).toBeNull()
    expect(open.started.urls.chat).toBe(`http://localhost:${open.started.port}/`)
    await open.close()
  })

  test('a taken port is one clear sentence', async () => {
    const first = await startTestHost()
    const second = startTestHost({ port: String(first.started.port) })
    await expect(second).rejects.toMatchObject({
      code: 'port-taken',
      message: `port ${first.started.port} is used by another program`,
    })
    await first.close()
  })

  test('an address of another machine is a wrong option', async () => {
    await expect(startTestHost({ host: '203.0.113.7' })).rejects.toMatchObject({
      code: 'bad-option',
    })
  })

  test('closing twice, and before the start, is fine and frees the port', async () => {
    const first = await startTestHost()
    const { port } = first.started
    await Promise.all([first.host.close(), first.host.close()])
    const again = await startTestHost({ port: String(port) })
    expect(again.started.port).toBe(port)
    await again.close()
    await first.close()
    const never = createHost(parseConfig({ port: '0' }), {} as never)
    await never.close()
  })

  test('--https serves with its own certificate and keeps it', async () => {
    const first = await startTestHost({ https: true })
    expect(first.started.urls.chat).toMatch(/^https:/)
    const status = await new Promise<number | undefined>((resolve, reject) => {
      request(`${first.origin}/api/swarm`, { rejectUnauthorized: false }, (response) => {
        response.resume()
        resolve(response.statusCode)
      })
        .on('error', reject)
        .end()
    })
    expect(status).toBe(200)
    expect((await stat(join(first.dataDir, 'host-key.pem'))).mode & 0o077).toBe(0)
    await first.close()
  })
})

/** Not by fetch, which adds `no-cache` to conditional requests. */
function statusWithTag(url: string, tag: string): Promise<number | undefined> {
  return new Promise((resolve, reject) => {
    plainGet(url, { headers: { 'if-none-match': tag } }, (response) => {
      response.resume()
      resolve(response.statusCode)
    }).on('error', reject)
  })
}
