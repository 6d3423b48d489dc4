import { createServer, type RequestListener } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterEach, expect, test } from 'vitest'
import { startTestHost } from '../../test/support/host-on-disk.ts'
import { checkHost } from './check-host.ts'

const cleanups: (() => unknown)[] = []
afterEach(async () => {
  for (const cleanup of cleanups.splice(0)) await cleanup()
})

async function serve(listener: RequestListener): Promise<number> {
  const server = createServer(listener)
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  cleanups.push(() => server.close())
  // A TCP server has an address of this kind.
  return (server.address() as AddressInfo).port
}

test('a host that answers is no problem', async () => {
  const host = await startTestHost()
  cleanups.push(() => host.close())
  expect(await checkHost(host.origin)).toBeNull()
})

test('a certificate of the host’s own is told apart, with what to do', async () => {
  const host = await startTestHost({ https: true })
  cleanups.push(() => host.close())
  const error = await checkHost(host.origin)
  expect(error).toMatchObject({ code: 'host-untrusted' })
  expect(error?.message).toMatch(/does not trust the host's certificate \(.*SIGNED/)
  expect(error?.hint).toMatch(/NODE_EXTRA_CA_CERTS/)
})

test('nothing listening, no such name, and http where https was asked for are named', async () => {
  const port = await serve((_request, response) => response.end())
  expect((await checkHost(`https://127.0.0.1:${port}`))?.message).toMatch(/does not speak https/)
  for (const cleanup of cleanups.splice(0)) await cleanup()
  const error = await checkHost(`http://127.0.0.1:${port}`)
  expect(error).toMatchObject({ code: 'host-unreachable' })
  expect(error?.message).toBe(`http://127.0.0.1:${port}: nothing listens there`)
  const fetch = () =>
    Promise.reject(
      new TypeError('fetch failed', {
        cause: new AggregateError([Object.assign(new Error('x'), { code: 'ENOTFOUND' })]),
      }),
    )
  expect((await checkHost('http://nowhere.invalid', fetch))?.message).toMatch(/no machine has/)
})

test('another web server is no host', async () => {
  const port = await serve((_request, response) => response.end('<html>'))
  expect((await checkHost(`http://127.0.0.1:${port}`))?.message).toMatch(/no CrowdInfer host/)
})
