import { afterEach, expect, test } from 'vitest'
import { openApiHost, type ApiHost } from '../support/api-host.ts'

let api: ApiHost
afterEach(async () => {
  await api.host.close()
})

/** How the ring was told to choose the tokens of each request so far. */
const samplings = () =>
  api.ring.sessions.map(({ order }) => {
    const { temperature, topP, topK, repetitionPenalty } = order.sampling
    return { temperature, topP, topK, repetitionPenalty }
  })

test('the model’s own generation_config.json counts where a request says nothing', async () => {
  api = await openApiHost({ do_sample: true, temperature: 0.6, top_k: 20, repetition_penalty: 1.1 })
  api.answers('Hello')
  expect((await api.chat()).status).toBe(200)
  expect((await api.complete({ temperature: 0, top_k: 0, repetition_penalty: 1 })).status).toBe(200)
  expect(samplings()).toEqual([
    { temperature: 0.6, topP: 1, topK: 20, repetitionPenalty: 1.1 },
    { temperature: 0, topP: 1, topK: 0, repetitionPenalty: 1 },
  ])
})

test('one that does not sample changes nothing', async () => {
  api = await openApiHost({ do_sample: false, temperature: 0.6, top_k: 20 })
  api.answers('Hello')
  expect((await api.chat()).status).toBe(200)
  expect(samplings()).toEqual([{ temperature: 1, topP: 1, topK: 0, repetitionPenalty: 1 }])
})
