import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import {
  createFakeSignaling,
  testWelcome,
  type FakeSignaling,
} from '../test/support/fake-signaling.ts'
import { createManualTimers } from '../test/support/manual-timers.ts'
import { createBrowserClients } from './browser-client.browser.ts'
import type { Client } from './client/client-types.ts'
import type { ModelId } from './core/ids.ts'
import { QUEUE_WAIT_MS } from './core/limits.ts'
import type { Manifest } from './core/model/manifest.ts'
import type { ModelSource } from './model-source.ts'

const file = (name: string): string =>
  readFileSync(new URL(`../public/models/crowdtalk-0.3m/${name}`, import.meta.url), 'utf8')

/** A host that serves what `served` says. */
function setUp() {
  // Only what a client reads of it.
  const manifestOf = (id: string, revision: string) =>
    ({ id: id as ModelId, revision, contextLength: 100 }) as Manifest
  const served = { manifest: manifestOf('m', 'first'), template: 'one', reads: 0 }
  const source: ModelSource = {
    manifest: () => Promise.resolve(served.manifest),
    json(_manifest, name) {
      served.reads += 1
      return Promise.resolve(name === 'tokenizer.json' ? JSON.parse(file(name)) : {})
    },
    text: () => Promise.resolve(served.template),
    fetchInto: () => Promise.resolve(),
  }
  const signaling = createFakeSignaling()
  signalingOpens(signaling)
  const timers = createManualTimers()
  const clients = createBrowserClients({ signaling, source, timers })
  return {
    timers,
    served,
    signaling,
    serve(id: string, revision: string, template: string) {
      served.manifest = manifestOf(id, revision)
      served.template = template
    },
    open: (signal = new AbortController().signal) => clients.open('/manifest.json', signal),
  }
}

/** Starts a request and gives what was sent for it. */
async function asked(kit: ReturnType<typeof setUp>, client: Client) {
  const events = client.generate({ messages: [{ role: 'user', content: 'x' }] })
  const reading = events[Symbol.asyncIterator]().next()
  reading.catch(() => undefined)
  await Promise.resolve()
  const sent = kit.signaling.sent.at(-1)
  return sent?.kind === 'ask' ? sent : null
}

test('the same model after a reconnect keeps its client, and nothing is fetched again', async () => {
  const kit = setUp()
  const first = await kit.open()
  const reads = kit.served.reads
  expect(await kit.open()).toBe(first)
  expect(kit.served.reads).toBe(reads)
})

test.each([
  ['m', 'second'],
  ['other', 'first'],
])('model %s of revision %s gets a client of its own', async (id, revision) => {
  const kit = setUp()
  const first = await kit.open()
  const before = await asked(kit, first)
  kit.serve(id, revision, 'two')
  const second = await kit.open()
  expect(second).not.toBe(first)
  const after = await asked(kit, second)
  expect([before?.model, before?.revision]).toEqual(['m', 'first'])
  expect([after?.model, after?.revision]).toEqual([id, revision])
  expect(after?.prompt).not.toEqual(before?.prompt)
})

test('a load that was overtaken leaves the client alone', async () => {
  const kit = setUp()
  const first = await kit.open()
  const abort = new AbortController()
  kit.serve('m', 'second', 'two')
  abort.abort()
  await expect(kit.open(abort.signal)).rejects.toMatchObject({ code: 'aborted' })
  kit.serve('m', 'first', 'one')
  expect(await kit.open()).toBe(first)
})

test('an answer is not given up while its page is frozen: at the thaw it hears of its connection first', async () => {
  const kit = setUp()
  const client = await kit.open()
  const kinds: string[] = []
  const reading = (async () => {
    for await (const { kind } of client.generate({ prompt: 'x' })) kinds.push(kind)
  })()
  reading.catch(() => undefined)
  await kit.timers.advance(0)
  kit.timers.sleep(2 * QUEUE_WAIT_MS)
  await kit.timers.advance(0)
  kit.signaling.setState({ kind: 'lost', reason: 'transport close' })
  signalingOpens(kit.signaling)
  await kit.timers.advance(0)
  expect(kinds).toEqual(['interrupted', 'resumed'])
  await kit.timers.advance(QUEUE_WAIT_MS)
  await expect(reading).rejects.toMatchObject({ code: 'timeout' })
})

/** The host of the model that the source has. */
function signalingOpens(signaling: FakeSignaling): void {
  const welcome = testWelcome({ model: 'm' as ModelId, revision: 'first' })
  signaling.setState({ kind: 'open', welcome })
}
