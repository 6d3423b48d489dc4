import { afterEach, expect, test } from 'vitest'
import { operatorUrl } from '../../signaling/urls.ts'
import { GREEDY } from '../../sdk/core/sampling/params.ts'
import type { ChatMessage } from '../../sdk/client/tokenizer.ts'
import { openChain, openModel } from '../../sdk/index.node.ts'
import { askOnPage } from '../support/ask-page.ts'
import { startRing, type Ring } from '../support/ring.ts'

const SMALL = 'crowdtalk-0.3m'
const LARGE = 'crowdtalk-2.6m'
const QUESTION = 'What is a ring?'

let ring: Ring | null = null
afterEach(async () => {
  await ring?.close()
  ring = null
})

/** What the whole model says on one machine. */
async function unsplit(name: string, messages: readonly ChatMessage[]): Promise<string> {
  const model = await openModel(name, ring?.dataDir)
  const chain = await openChain(model, 1)
  const prompt = model.tokenizer.encodeChat(messages)
  const maxTokens = model.manifest.contextLength
  const { ids } = await chain.generate({ prompt, maxTokens, sampling: GREEDY })
  await chain.close()
  return model.tokenizer.decode(ids)
}

test('an open chat goes on with the model that the operator chooses on the dashboard', async () => {
  ring = await startRing({ model: SMALL, provider: 'wasm', tabs: 2 })
  const { started } = ring
  await ring.complete()
  const chat = await ring.openPage(started.urls.chat)
  const first = await askOnPage(chat, QUESTION)
  expect(first.text).toBe(await unsplit(SMALL, [{ role: 'user', content: QUESTION }]))

  const dashboard = await ring.openPage(operatorUrl(started.urls, started.adminToken))
  await dashboard.getByRole('button', { name: `Serve ${LARGE}` }).click()
  // What proves the operator is not left where people copy it from.
  expect(dashboard.url()).not.toContain(started.adminToken)
  await dashboard.getByTestId('confirm-yes').click()
  await dashboard.getByTestId('device-progress').first().waitFor()

  await chat.getByTestId('model-changed').waitFor()
  const second = await askOnPage(chat, QUESTION)
  expect(second.text).toBe(
    await unsplit(LARGE, [
      { role: 'user', content: QUESTION },
      { role: 'assistant', content: first.text },
      { role: 'user', content: QUESTION },
    ]),
  )
  await dashboard.getByText('Changing to').waitFor({ state: 'detached' })
})
