import { setImmediate as nextTurn } from 'node:timers/promises'
import { afterEach, expect, test } from 'vitest'
import { GREEDY } from '../../sdk/core/sampling/params.ts'
import { openChain, openModel } from '../../sdk/index.node.ts'
import { askOnPage } from '../support/ask-page.ts'
import { startRing, type Ring } from '../support/ring.ts'

const MODEL = 'crowdtalk-2.6m'
/** The answer takes most of a second. */
const QUESTION = 'Tell me a story about a fox named Lily in the forest.'

let ring: Ring | null = null

afterEach(async () => {
  await ring?.close()
  ring = null
})

async function unsplit(dataDir: string): Promise<string> {
  const model = await openModel(MODEL, dataDir)
  const chain = await openChain(model, 1)
  const { ids } = await chain.generate({
    prompt: model.tokenizer.encodeChat([{ role: 'user', content: QUESTION }]),
    maxTokens: model.manifest.contextLength,
    sampling: GREEDY,
  })
  await chain.close()
  return model.tokenizer.decode(ids)
}

test('RS4 the host is started anew in the middle of an answer: the chat page says so, and the answer goes on in its place', async () => {
  ring = await startRing({ model: MODEL, tabs: 0, workers: 2 })
  const { started, dataDir, swarm, restartHost } = ring
  await ring.complete()
  const expected = await unsplit(dataDir)
  const page = await ring.openPage(started.urls.chat)
  await page.evaluate(() => {
    const seen = new Set<string>()
    const status = document.querySelector('[data-testid="answer-status"]')
    if (status === null) throw new Error('no status')
    new MutationObserver(() => {
      seen.add(status.textContent.trim())
      document.body.dataset['seen'] = [...seen].join('|')
    }).observe(status, { childList: true, characterData: true, subtree: true })
  })
  const answering = askOnPage(page, QUESTION)
  const signal = AbortSignal.timeout(60_000)
  // Looked at each turn of the event loop: the answer is a short one.
  while ((swarm().requests.at(-1)?.tokens ?? 0) < 3) await nextTurn(undefined, { signal })
  await restartHost()
  const answer = await answering
  expect(answer).toMatchObject({ phase: 'done', text: expected })
  expect(swarm().requests).toHaveLength(1)
  const seen = await page.evaluate(() => document.body.dataset['seen'])
  expect(seen).toContain('The connection to the host is lost.')
  expect(seen).toContain('The host is back.')
  expect(await page.getByTestId('turn').count()).toBe(1)
  expect(await page.getByTestId('answer-status').textContent()).toMatch(/^\s*$/)
})
