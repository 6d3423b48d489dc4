import { mkdtemp, readdir, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Browser } from 'playwright-core'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { blockPieces } from '../../sdk/core/model/manifest.ts'
import { GREEDY } from '../../sdk/core/sampling/params.ts'
import { openChain, openModel } from '../../sdk/index.node.ts'
import type { SwarmSnapshot } from '../../sdk/protocol/swarm-snapshot.ts'
import { openAsker } from '../support/asker.ts'
import { eventually, launchChromium, openWorkerTab } from '../support/chromium.ts'
import { startHostProcess, type HostProcess } from '../support/host-process.ts'
import { startWorkerProcess, type WorkerProcess } from '../support/worker-process.ts'

const SMALL = 'crowdtalk-0.3m'
const QUESTION = 'What is a ring?'
const MESSAGES = [{ role: 'user', content: QUESTION }] as const

let folder = ''
let browser: Browser | null = null
let host: HostProcess
const workers: WorkerProcess[] = []

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'crowdinfer-workers-'))
})

afterEach(async () => {
  await Promise.all(workers.splice(0).map((worker) => worker.kill()))
  await host.kill()
  await browser?.close()
  browser = null
  await rm(folder, { recursive: true, force: true })
})

async function startHost(stages: number): Promise<void> {
  host = await startHostProcess({ dataDir: folder, model: SMALL, stages })
}

function startWorker(name: string, flags: readonly string[] = [], data = name): WorkerProcess {
  const dataDir = join(folder, data)
  const worker = startWorkerProcess({
    joinUrl: host.joinUrl,
    name,
    dataDir,
    flags,
    environment: { TMPDIR: folder },
  })
  workers.push(worker)
  return worker
}

/** What the ring answers, as ids. */
async function answer(maxTokens?: number): Promise<readonly number[]> {
  const { manifest, tokenizer } = await openModel(SMALL, folder)
  const asker = await openAsker({ url: host.origin, secret: host.secret, manifest, tokenizer })
  try {
    const request = { messages: MESSAGES, ...(maxTokens === undefined ? {} : { maxTokens }) }
    for await (const event of asker.client.generate(request)) {
      if (event.kind === 'end') return event.ids
    }
    return []
  } finally {
    asker.close()
  }
}

async function unsplit(): Promise<readonly number[]> {
  const model = await openModel(SMALL, folder)
  const chain = await openChain(model, 1)
  const { ids } = await chain.generate({
    prompt: model.tokenizer.encodeChat(MESSAGES),
    maxTokens: model.manifest.contextLength,
    sampling: GREEDY,
  })
  await chain.close()
  return ids
}

const devices = (swarm: SwarmSnapshot) => swarm.peers.filter(({ role }) => role === 'worker')
const paths = (swarm: SwarmSnapshot) => [...new Set(swarm.links.map(({ path }) => path))]

describe('a ring of Node workers', () => {
  test('three answer with the unsplit model’s ids, linked directly, each with its own pieces only', async () => {
    await startHost(3)
    const three = ['a', 'b', 'c'].map((name) => startWorker(name))
    const swarm = await host.complete()
    expect(await answer()).toEqual(await unsplit())
    expect(paths(swarm)).toEqual(['direct'])
    expect((await host.swarm()).relayedBytes).toBe(0)
    const { manifest } = await openModel(SMALL, folder)
    for (const worker of three) {
      const [first] = worker.events()
      expect(first).toMatchObject({ event: 'provider', provider: 'cpu', threads: 1 })
      const range = devices(swarm).find(({ name }) => name === worker.name)?.range
      const pieces = manifest.blocks.slice(range?.start, range?.end).flatMap(blockPieces)
      const share = new Map(pieces.map(({ sha256, bytes }) => [sha256, bytes]))
      expect(await worker.storedBytes()).toBe([...share.values()].reduce((a, b) => a + b, 0))
    }
  })

  test.each([
    { order: 'the tab first', tabFirst: true },
    { order: 'the tab last', tabFirst: false },
  ])('a tab and two workers make one chain: $order', async ({ tabFirst }) => {
    await startHost(3)
    browser = await launchChromium()
    const openTab = async (): Promise<void> => {
      if (browser === null) return
      await openWorkerTab(browser, { joinUrl: host.joinUrl, name: 'tab', provider: 'wasm' })
      await eventually('the tab', 60_000, async () =>
        devices(await host.swarm()).some(({ name, range }) => name === 'tab' && range)
          ? true
          : null,
      )
    }
    if (tabFirst) await openTab()
    for (const name of ['a', 'b']) await startWorker(name).event('fetching')
    if (!tabFirst) await openTab()
    const swarm = await host.complete()
    expect(await answer()).toEqual(await unsplit())
    expect(
      devices(swarm)
        .map(({ provider }) => provider)
        .sort(),
    ).toEqual(['cpu', 'cpu', 'wasm'])
    expect(paths(swarm)).toEqual(['direct'])
  })
})

describe('kill -9', () => {
  test(
    'of a worker and of the host, three times each: whole again by itself, no piece fetched twice',
    { timeout: 240_000 },
    async () => {
      await startHost(3)
      startWorker('a')
      startWorker('b')
      let victim = startWorker('c')
      await host.complete()
      const expected = await unsplit()
      expect(await answer()).toEqual(expected)
      const fetched = host.pieceRequests()
      expect(fetched.length).toBeGreaterThan(0)
      for (let cycle = 0; cycle < 3; cycle += 1) {
        await victim.kill()
        victim = startWorker('c')
        await victim.event('serving')
        await host.complete()
        expect(await answer(), `after the worker’s end ${cycle}`).toEqual(expected)

        await host.kill()
        await host.start()
        await host.complete()
        expect(await answer(), `after the host’s end ${cycle}`).toEqual(expected)
      }
      expect(host.pieceRequests()).toEqual(fetched)
      expect(
        devices(await host.swarm())
          .map(({ name }) => name)
          .sort(),
      ).toEqual(['a', 'b', 'c'])
    },
  )
})

describe('leaving', () => {
  test('Ctrl-C lets the running answer end, tells the host, and ends with 0; the pieces stay', async () => {
    await startHost(2)
    const [stays, leaves] = [startWorker('stays'), startWorker('leaves')]
    await host.complete()
    const expected = await unsplit()
    const running = answer()
    await eventually('the first tokens', 20_000, async () =>
      (await host.swarm()).requests.some(({ tokens }) => tokens > 0) ? true : null,
    )
    leaves.process.kill('SIGINT')
    expect(await running).toEqual(expected)
    expect(await leaves.exited).toBe(0)
    expect(
      leaves
        .events()
        .slice(-2)
        .map(({ event }) => event),
    ).toEqual(['draining', 'left'])
    await eventually('the host to know', 2_000, async () =>
      devices(await host.swarm()).length === 1 ? true : null,
    )
    expect(await leaves.storedBytes()).toBeGreaterThan(0)
    expect(stays.process.exitCode).toBeNull()
  })

  test('a second Ctrl-C leaves at once', async () => {
    await startHost(1)
    const worker = startWorker('w')
    await worker.event('serving')
    worker.process.kill('SIGSTOP')
    // Both are there before it can act on the first.
    worker.process.kill('SIGINT')
    worker.process.kill('SIGTERM')
    worker.process.kill('SIGCONT')
    expect(['SIGINT', 'SIGTERM']).toContain(await worker.exited)
  })

  test('--once ends with the host', async () => {
    await startHost(1)
    const worker = startWorker('w', ['--once'])
    await worker.event('serving')
    await host.kill()
    expect(await worker.exited).toBe(0)
  })
})

describe('one machine', () => {
  test('two workers share a data folder: two identities, one store, no piece twice', async () => {
    await startHost(1)
    const first = startWorker('one', [], 'shared')
    await first.event('serving')
    const fetched = host.pieceRequests()
    const second = startWorker('two', [], 'shared')
    await second.event('serving')
    const swarm = await host.complete()
    expect(new Set(devices(swarm).map(({ peer }) => peer)).size).toBe(2)
    expect(await second.event('serving')).toMatchObject({ fetchedBytes: 0 })
    expect(host.pieceRequests()).toEqual(fetched)
    expect(await answer()).toEqual(await unsplit())
  })

  test('a worker tells nobody but the host: the runtime’s own reports are off', async () => {
    await startHost(1)
    const worker = startWorker('w')
    await worker.event('serving')
    // Where its reporting is on, the runtime opens a log of it as soon as it loads.
    const opened = (await readdir(folder)).filter((name) => name.startsWith('mat-debug'))
    expect(opened).toEqual([])
  })

  test('the same worker comes back as itself', async () => {
    await startHost(1)
    const first = startWorker('w')
    await first.event('serving')
    const [before] = devices(await host.swarm())
    first.process.kill('SIGTERM')
    expect(await first.exited).toBe(0)
    await startWorker('w').event('serving')
    expect(devices(await host.swarm()).map(({ peer }) => peer)).toEqual([before?.peer])
  })
})

describe('what cannot be', () => {
  test('says what is wrong, and ends with a code that says whether waiting would help', async () => {
    await startHost(1)
    const ended = async (worker: WorkerProcess, exitCode = 78): Promise<string> => {
      expect(await worker.exited).toBe(exitCode)
      return worker.output()
    }
    const wrong = startWorkerProcess({
      joinUrl: `${host.origin}/join#s=wrong`,
      name: 'w',
      dataDir: join(folder, 'wrong'),
    })
    expect(await ended(wrong)).toContain('"code":"wrong-secret"')
    const bare = startWorkerProcess({
      joinUrl: `${host.origin}/join`,
      name: 'w',
      dataDir: join(folder, 'bare'),
    })
    expect(await ended(bare)).toContain('copy the whole join link')
    await host.kill()
    expect(await ended(startWorker('w', ['--once']), 1)).toContain('"code":"host-unreachable"')
  })
})
