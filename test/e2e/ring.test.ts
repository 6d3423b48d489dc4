import { writeFile, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterEach, describe, expect, test } from 'vitest'
import { SESSIONS_PER_STAGE } from '../../sdk/core/limits.ts'
import { GREEDY } from '../../sdk/core/sampling/params.ts'
import type { ChatMessage } from '../../sdk/client/tokenizer.ts'
import { openChain, openModel } from '../../sdk/index.node.ts'
import { smoke } from '../smoke/smoke.ts'
import { askOnPage } from '../support/ask-page.ts'
import { eventually } from '../support/chromium.ts'
import type { SwarmSnapshot } from '../../sdk/protocol/swarm-snapshot.ts'
import { startRing, type Ring, type RingOptions, type WorkerTab } from '../support/ring.ts'

const SMALL = 'crowdtalk-0.3m'
const QUESTION = 'What is a ring?'

let ring: Ring | null = null

async function start(options: RingOptions): Promise<Ring> {
  ring = await startRing({ model: SMALL, provider: 'wasm', ...options })
  return ring
}

afterEach(async () => {
  await ring?.close()
  ring = null
})

/** The unsplit model's answer to the last of the messages. */
async function unsplit(messages: readonly ChatMessage[], dataDir: string): Promise<string> {
  const model = await openModel(SMALL, dataDir)
  const chain = await openChain(model, 1)
  const prompt = model.tokenizer.encodeChat(messages)
  const { ids } = await chain.generate({
    prompt,
    maxTokens: model.manifest.contextLength,
    sampling: GREEDY,
  })
  await chain.close()
  return model.tokenizer.decode(ids)
}

/** Requests for pieces so far, as the browser counted them. */
const pieceRequests = (tabs: readonly WorkerTab[]): number[] =>
  tabs.map(({ pieces }) => pieces.requests)

const workersOf = (swarm: SwarmSnapshot) => swarm.peers.filter((peer) => peer.role === 'worker')

const ask = (text: string): ChatMessage => ({ role: 'user', content: text })

describe('a ring of real tabs', () => {
  test.each([
    { tabs: 3, workers: 0, model: SMALL },
    { tabs: 6, workers: 0, model: 'crowdtalk-2.6m' },
    { tabs: 1, workers: 2, model: SMALL },
    { tabs: 0, workers: 3, model: SMALL },
  ])(
    '$tabs tabs and $workers workers answer with the unsplit model’s tokens, each with its own pieces only, none through the host',
    async ({ tabs, workers, model }) => {
      const result = await smoke(
        { tabs, workers, provider: 'wasm', model, question: QUESTION },
        () => undefined,
      )
      expect(result.problems).toEqual([])
      expect(result.ok).toBe(true)
      expect(result.tabs).toHaveLength(tabs)
      expect(result.workers).toHaveLength(workers)
    },
  )

  test(
    'a WebGPU tab and a WASM tab make one chain with the same greedy text',
    { timeout: 300_000 },
    async () => {
      const { started, ...mixed } = await start({ tabs: 0, stages: 2 })
      await mixed.openTab({ provider: 'webgpu' })
      await mixed.openTab({ provider: 'wasm' })
      const swarm = await mixed.complete(150_000)
      expect(
        swarm.peers
          .map((peer) => peer.provider)
          .filter(Boolean)
          .sort(),
      ).toEqual(['wasm', 'webgpu'])
      const page = await mixed.openPage(started.urls.chat)
      const answer = await askOnPage(page, QUESTION, 150_000)
      expect(answer.phase).toBe('done')
      expect(answer.text).toBe(await unsplit([ask(QUESTION)], mixed.dataDir))
    },
  )

  test('a second question knows the first, through the chat template', async () => {
    const { started, complete, openPage, dataDir } = await start({ tabs: 2 })
    await complete()
    const page = await openPage(started.urls.chat)
    const first = await askOnPage(page, 'My name is Ada.')
    const second = await askOnPage(page, 'What is my name?')
    const turns: ChatMessage[] = [
      ask('My name is Ada.'),
      { role: 'assistant', content: first.text },
      ask('What is my name?'),
    ]
    expect(second.text).toBe(await unsplit(turns, dataDir))
  })
})

describe('storage', () => {
  test('a reloaded tab serves again without fetching a piece', async () => {
    const { tabs, complete, swarm, started, openPage, dataDir } = await start({ tabs: 2 })
    await complete()
    const fetched = pieceRequests(tabs)
    expect(fetched.every((requests) => requests > 0)).toBe(true)
    await Promise.all(tabs.map(({ page }) => page.reload()))
    // A tab that came back has a new assignment, of which nothing was fetched.
    await eventually('the ring after the reload', 60_000, () =>
      swarm().complete && workersOf(swarm()).every((peer) => peer.fetchedBytes === 0) ? true : null,
    )
    const page = await openPage(started.urls.chat)
    expect((await askOnPage(page, QUESTION)).text).toBe(await unsplit([ask(QUESTION)], dataDir))
    expect(pieceRequests(tabs)).toEqual(fetched)
  })

  test('a piece that is corrupt at its source is named, and the tab recovers when it is whole again', async () => {
    const { started, openTab, complete, dataDir, swarm } = await start({ tabs: 0, stages: 1 })
    const { manifest } = started.model
    const hash = manifest.blocks[1]?.data[0]?.sha256 ?? ''
    const file = join(dataDir, 'models', SMALL, 'pieces', hash)
    const whole = await readFile(file)
    const broken = Buffer.from(whole)
    broken[100] = (broken[100] ?? 0) ^ 0xff
    await writeFile(file, broken)
    const { page } = await openTab()
    await page.getByTestId('error-code').waitFor({ timeout: 60_000 })
    expect(await page.getByTestId('error-code').textContent()).toContain('piece-corrupt')
    expect(swarm().complete).toBe(false)
    await writeFile(file, whole)
    await page.reload()
    await complete()
  })
})

describe('links', () => {
  test('with WebRTC blocked the relay carries the ring, and the page says so', async () => {
    const { started, tabs, complete, openPage, swarm, dataDir } = await start({
      tabs: 2,
      browserFlags: ['--webrtc-ip-handling-policy=disable_non_proxied_udp'],
    })
    await complete()
    const page = await openPage(started.urls.chat)
    expect((await askOnPage(page, QUESTION)).text).toBe(await unsplit([ask(QUESTION)], dataDir))
    expect(swarm().relayedBytes).toBeGreaterThan(0)
    expect(swarm().links.every(({ path }) => path === 'relay')).toBe(true)
    await tabs[0]?.page.getByTestId('relay-note').waitFor({ timeout: 5_000 })
  })
})

describe('the host', () => {
  test('after a host restart the same tabs are a ring again, with what they hold', async () => {
    const { started, tabs, complete, restartHost, openPage, dataDir } = await start({ tabs: 3 })
    await complete()
    const fetched = pieceRequests(tabs)
    const page = await openPage(started.urls.chat)
    await askOnPage(page, QUESTION)
    await restartHost()
    await complete()
    const answer = await askOnPage(page, QUESTION)
    expect(answer.phase).toBe('done')
    await page.reload()
    expect((await askOnPage(page, QUESTION)).text).toBe(await unsplit([ask(QUESTION)], dataDir))
    expect(pieceRequests(tabs)).toEqual(fetched)
  })

  test('an answer that is stopped after its host was started anew leaves nothing behind in the stages', async () => {
    const { started, complete, restartHost, openPage, swarm } = await start({ tabs: 2 })
    const page = await openPage(started.urls.chat)
    // Once more than a stage keeps sessions: a leak would show as a refusal.
    for (let round = 0; round <= SESSIONS_PER_STAGE; round += 1) {
      await complete()
      await page.getByTestId('composer').fill('Tell me a story about a cat and a boat.')
      await page.getByTestId('send').click({ timeout: 30_000 })
      await eventually('the first tokens', 30_000, () =>
        swarm().requests.some(({ state, tokens }) => state === 'running' && tokens > 1)
          ? true
          : null,
      )
      await restartHost()
      await page.getByTestId('stop').click({ timeout: 15_000 })
      const stopped = page.locator('[data-testid=turn][data-phase=stopped]')
      await stopped.nth(round).waitFor({ timeout: 5_000 })
    }
    await complete()
    expect((await askOnPage(page, QUESTION)).phase).toBe('done')
  })
})

describe('honest ends', () => {
  test('a tab that closes in mid answer ends it with a reason; a new tab makes the ring whole again', async () => {
    const { started, tabs, complete, openTab, openPage, swarm } = await start({ tabs: 2 })
    await complete()
    const page = await openPage(started.urls.chat)
    await page.getByTestId('composer').fill('Tell me a story about a cat and a boat.')
    await page.getByTestId('send').click()
    await eventually('the first tokens', 30_000, () =>
      swarm().requests.some(({ tokens }) => tokens > 1) ? true : null,
    )
    await tabs[1]?.page.close()
    const error = page.getByTestId('turn').last().getByTestId('error-code')
    await error.waitFor({ timeout: 15_000 })
    expect(await error.textContent()).toContain('stage-lost')
    await page
      .getByText(/layers missing/)
      .first()
      .waitFor({ timeout: 5_000 })
    await openTab()
    await complete()
    expect((await askOnPage(page, QUESTION)).phase).toBe('done')
  })

  test('a wrong secret lets nobody in, and the page says what to do', async () => {
    const { started, openPage, swarm } = await start({ tabs: 0, stages: 1 })
    const page = await openPage(started.urls.chat.replace(/#s=.*/, '#s=wrong'))
    await page
      .getByText(/wrong-secret/)
      .first()
      .waitFor({ timeout: 15_000 })
    expect(swarm().peers).toEqual([])
  })

  test('a conversation beyond the context is refused with the numbers', async () => {
    const { started, complete, openPage } = await start({ tabs: 1 })
    await complete()
    const page = await openPage(started.urls.chat)
    const answer = await askOnPage(page, 'ring '.repeat(600))
    expect(answer.phase).toBe('failed')
    expect(await page.getByTestId('turn').last().textContent()).toMatch(
      /\d{3,} tokens and the model holds 512/,
    )
  })
})
