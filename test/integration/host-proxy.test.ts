import { createServer, request as httpRequest, type IncomingMessage, type Server } from 'node:http'
import type { Duplex } from 'node:stream'
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { PeerId } from '../../sdk/core/ids.ts'
import { createSignaling } from '../../sdk/net/signaling-client.ts'
import { createSystemTimers } from '../../sdk/net/timers.ts'
import { startTestHost, type TestHost } from '../support/host-on-disk.ts'

/** As nginx or a tunnel does it: another name and port outside, https told by a header, sockets passed on. */
function createProxy(port: number): Server {
  const forward = (request: IncomingMessage) =>
    httpRequest({
      port,
      host: '127.0.0.1',
      method: request.method,
      path: request.url,
      headers: {
        ...request.headers,
        host: 'models.example',
        'x-forwarded-proto': 'https',
        'x-forwarded-for': '203.0.113.9',
      },
    })
  const proxy = createServer((request, response) => {
    const onward = forward(request)
    onward.on('response', (answer) => {
      response.writeHead(answer.statusCode ?? 502, answer.headers)
      answer.pipe(response)
    })
    request.pipe(onward)
  })
  proxy.on('upgrade', (request: IncomingMessage, socket: Duplex) => {
    const onward = forward(request)
    onward.on('upgrade', (answer, wire, first) => {
      const headers = Object.entries(answer.headers).map(
        ([name, value]) => `${name}: ${String(value)}`,
      )
      socket.write(['HTTP/1.1 101 Switching Protocols', ...headers, '', ''].join('\r\n'))
      socket.write(first)
      wire.pipe(socket).pipe(wire)
      socket.on('error', () => wire.destroy())
      wire.on('error', () => socket.destroy())
    })
    onward.on('error', () => socket.destroy())
    onward.end()
  })
  return proxy
}

let host: TestHost
let proxy: Server
let origin = ''

beforeAll(async () => {
  host = await startTestHost()
  proxy = createProxy(host.started.port)
  await new Promise<void>((resolve) => proxy.listen(0, '127.0.0.1', resolve))
  const address = proxy.address()
  if (typeof address !== 'object' || address === null) throw new Error('no port')
  origin = `http://127.0.0.1:${address.port}`
})

afterAll(async () => {
  proxy.closeAllConnections()
  proxy.close()
  await host.close()
})

test('behind a proxy pages and pieces are the same, and nothing leads past it', async () => {
  for (const path of ['/', '/join', '/dashboard', '/models/test-model/manifest.json']) {
    const [direct, through] = await Promise.all([fetch(host.origin + path), fetch(origin + path)])
    expect(through.status).toBe(200)
    const text = await through.text()
    expect(text).toBe(await direct.text())
    expect(text).not.toContain(String(host.started.port))
  }
  const part = await fetch(`${origin}/models/test-model/pieces/${host.piece.hash}`, {
    headers: { range: 'bytes=100-199' },
    redirect: 'error',
  })
  expect(part.status).toBe(206)
  expect(new Uint8Array(await part.arrayBuffer())).toEqual(host.piece.bytes.slice(100, 200))
})

test('behind a proxy a device joins with the secret, and without it does not', async () => {
  for (const [secret, end] of [
    [host.started.secret ?? '', 'open'],
    ['guessed', 'refused'],
  ] as const) {
    const signaling = createSignaling({
      url: origin,
      identity: { role: 'worker', peer: `peer-${end}` as PeerId, token: end, name: 'far', secret },
      timers: createSystemTimers(),
    })
    const kinds: string[] = []
    signaling.onState(({ kind }) => kinds.push(kind))
    signaling.connect()
    await expect.poll(() => kinds.at(-1), { timeout: 10_000 }).toBe(end)
    signaling.close()
  }
})
