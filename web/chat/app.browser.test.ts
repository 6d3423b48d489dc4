import { flushSync, mount, unmount } from 'svelte'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { page, userEvent } from 'vitest/browser'
import type { GenerateEvent } from '../../sdk/client/client-types.ts'
import { CrowdError } from '../../sdk/core/errors.ts'
import type { ModelId } from '../../sdk/core/ids.ts'
import {
  createFakeConnection,
  type FakeAnswer,
  type FakeConnection,
} from '../fixtures/fake-connection.ts'
import { anOpenState, aPeer, aSwarm, peerId } from '../fixtures/snapshots.ts'
import App from './App.svelte'
import { createChat, type Chat } from './chat.svelte.ts'

let connection: FakeConnection
let chat: Chat
let app: object

beforeEach(() => {
  connection = createFakeConnection(aSwarm())
  connection.setState(anOpenState())
  chat = createChat({ connection, now: () => performance.now() })
  app = mount(App, { target: document.body, props: { chat, secret: 'abc' } })
})

afterEach(async () => {
  chat.close()
  await unmount(app)
})

const composer = page.getByTestId('composer')
const answer = page.getByTestId('answer')

async function ask(question: string): Promise<FakeAnswer> {
  const before = connection.answers.length
  await expect.element(page.getByTestId('send')).toBeVisible()
  await composer.fill(question)
  await expect.element(page.getByTestId('send')).toBeEnabled()
  await userEvent.keyboard('{Enter}')
  await expect.poll(() => connection.answers.length).toBe(before + 1)
  const asked = connection.answers.at(-1)
  if (asked === undefined) throw new Error('nothing was asked')
  return asked
}

const delta = (text: string): GenerateEvent => ({ kind: 'delta', text, token: 1, logprob: -1 })
const end = (reason: 'stop' | 'cancelled'): GenerateEvent => ({
  kind: 'end',
  reason,
  timings: {
    promptTokens: 20,
    tokens: 2,
    firstTokenMs: 80,
    lapMs: 20,
    computeMs: 15,
    hopMs: 2.5,
    hops: 2,
  },
  ids: [1, 2],
})

/** The host goes over to another model, which the ring already answers with. */
function serveOther(): void {
  const id = 'other-model' as ModelId
  connection.setModel({ model: id, revision: 'r2', manifestPath: `/models/${id}/manifest.json` })
  const { model } = aSwarm()
  connection.setSwarm(aSwarm({ model: { ...model, id, layerCount: 12, contextLength: 2_048 } }))
}

describe('the chat page', () => {
  test('MO4 another model gets the conversation, through its own tokenizer, without a reload', async () => {
    const first = await ask('One?')
    first.emit({
      kind: 'accepted',
      stages: [{ peer: peerId('p1'), name: 'attic', range: { start: 0, end: 8 } }],
    })
    first.emit(delta('1'))
    first.emit(end('stop'))
    await expect.element(page.getByTestId('model')).toHaveTextContent('crowdtalk-2.6m')
    serveOther()
    await expect.element(page.getByTestId('model')).toHaveTextContent('other-model')
    await expect.element(page.getByTestId('model-changed')).toHaveTextContent('other-model answers')
    const second = await ask('Two?')
    expect([first.client, second.client]).toEqual([1, 2])
    expect(second.request.messages).toHaveLength(3)
    await expect.element(page.getByTestId('model-changed')).not.toBeInTheDocument()
    await expect.element(page.getByTestId('model-border')).toHaveTextContent('other-model')
    // What was computed by the former model is still said in its layers and its window.
    await expect.element(page.getByTestId('devices')).toHaveTextContent('layers 1–6 and head')
    await expect.element(page.getByTestId('devices')).toHaveTextContent('22 of 512 tokens used')
  })

  test('nothing is asked while the state of the ring is that of the former model', async () => {
    const id = 'other-model' as ModelId
    connection.setModel({ model: id, revision: 'r2', manifestPath: '/models/other-model/m' })
    await expect.element(page.getByTestId('blocked')).toHaveTextContent('state of the ring')
    serveOther()
    await expect.element(page.getByTestId('blocked')).not.toBeInTheDocument()
  })

  test('says that the host is changing to another model', async () => {
    connection.setSwarm(aSwarm({ change: { name: 'other', phase: 'draining', step: '' } }))
    await expect.element(page.getByTestId('blocked')).toHaveTextContent('changing to other')
    const advice = '12 of 12 layers on the way: a device is loading them'
    const change = { name: 'other', phase: 'loading', step: '' } as const
    const loading = aPeer({ state: 'fetching' })
    connection.setSwarm(aSwarm({ complete: false, advice, change, peers: [loading] }))
    await expect.element(page.getByTestId('ring-changing')).toHaveTextContent(advice)
    // Where nobody loads, somebody has to be invited.
    connection.setSwarm(aSwarm({ complete: false, advice: 'open 2 more tabs', change, peers: [] }))
    await expect.element(page.getByTestId('join-link')).toBeVisible()
  })

  test('streams an answer and says who computed it and how fast', async () => {
    const asked = await ask('What is a ring?')
    await expect.element(composer).toHaveValue('')
    await expect.element(page.getByText('Waiting for its turn…')).toBeVisible()
    asked.emit({
      kind: 'accepted',
      stages: [{ peer: peerId('p1'), name: 'attic', range: { start: 0, end: 8 } }],
    })
    asked.emit(delta('A ring '))
    await expect.element(answer).toHaveTextContent('A ring')
    await expect.element(page.getByText('Waiting for its turn…')).not.toBeInTheDocument()
    await expect.element(page.getByTestId('stop')).toBeVisible()
    asked.emit(delta('of tabs.'))
    asked.emit(end('stop'))
    await expect.element(page.getByTestId('facts')).toHaveTextContent('50 tokens/s')
    expect(answer.element().textContent).toBe('A ring of tabs.')
    await expect.element(page.getByTestId('devices')).toHaveTextContent('attic (embedding and')
    await expect.element(page.getByTestId('devices')).toHaveTextContent('22 of 512 tokens used')
  })

  test('sends the whole conversation, greedy by default', async () => {
    const first = await ask('One?')
    first.emit(delta('1'))
    first.emit(end('stop'))
    await expect.element(page.getByTestId('facts')).toBeVisible()
    const second = await ask('Two?')
    expect(second.request.messages).toEqual([
      { role: 'user', content: 'One?' },
      { role: 'assistant', content: '1' },
      { role: 'user', content: 'Two?' },
    ])
    expect(second.request.sampling).toEqual({ temperature: 0, seed: 0 })
    expect(second.request.maxTokens).toBeUndefined()
  })

  test('stop aborts the request, keeps the text and gives the composer back', async () => {
    const asked = await ask('Tell a long story')
    asked.emit(delta('Once'))
    await expect.element(answer).toHaveTextContent('Once')
    await page.getByTestId('stop').click()
    expect(asked.signal?.aborted).toBe(true)
    await expect.element(page.getByTestId('ending')).toHaveTextContent('Stopped')
    await expect.element(answer).toHaveTextContent('Once')
    await expect.element(page.getByTestId('send')).toBeVisible()
    await expect.element(composer).toHaveFocus()
  })

  test('markup from the model is shown as text', async () => {
    const asked = await ask('<b>hello</b>')
    asked.emit(delta('<img src=x onerror="document.title=1"> **bold** &amp;'))
    asked.emit(end('stop'))
    await expect.element(page.getByTestId('facts')).toBeVisible()
    expect(answer.element().children).toHaveLength(0)
    expect(answer.element().textContent).toContain('<img src=x')
    expect(page.getByTestId('question').element().textContent).toBe('<b>hello</b>')
  })

  test('each line of an answer takes its own direction', async () => {
    const asked = await ask('سؤال')
    asked.emit(delta('hello\nمرحبا'))
    await expect.element(answer).toHaveTextContent('hello')
    expect(answer.element().getAttribute('dir')).toBe('auto')
    expect(getComputedStyle(answer.element()).unicodeBidi).toBe('plaintext')
    expect(composer.element().getAttribute('dir')).toBe('auto')
  })

  test('a failed answer can be asked again, and only once at a time', async () => {
    const asked = await ask('Why?')
    asked.emit(delta('Beca'))
    asked.fail(new CrowdError('stage-lost', 'the phone left at lap 3'))
    await expect.element(page.getByTestId('error')).toHaveTextContent('the phone left at lap 3')
    await expect.element(page.getByTestId('error-code')).toHaveTextContent('stage-lost')
    await page.getByTestId('retry').click()
    await expect.poll(() => connection.answers.length).toBe(2)
    expect(connection.answers[1]?.request.messages).toEqual([{ role: 'user', content: 'Why?' }])
    expect(document.querySelectorAll('[data-testid=turn]')).toHaveLength(1)
    await expect.element(page.getByTestId('error')).not.toBeInTheDocument()
  })

  test('a prompt that is too long shows the numbers and offers a new conversation', async () => {
    const asked = await ask('too long')
    asked.fail(new CrowdError('prompt-too-long', '530 tokens, the context has 512'))
    await expect.element(page.getByTestId('error')).toHaveTextContent('530 tokens')
    await page.getByTestId('error').getByRole('button', { name: 'New conversation' }).click()
    await expect.element(page.getByTestId('turn')).not.toBeInTheDocument()
    await expect.element(composer).toHaveFocus()
  })

  test('Shift+Enter makes a new line', async () => {
    await composer.fill('one')
    await userEvent.keyboard('{Shift>}{Enter}{/Shift}')
    await expect.element(composer).toHaveValue('one\n')
    expect(connection.answers).toHaveLength(0)
  })

  test('while layers are missing nothing is sent, and the page says what to do', async () => {
    const advice = '2 of 6 layers missing: open one more tab'
    await composer.fill('Hello?')
    connection.setSwarm(aSwarm({ complete: false, advice }))
    await expect.element(page.getByTestId('advice')).toHaveTextContent(advice)
    await expect.element(page.getByTestId('join-link')).toHaveValue(`${location.origin}/join#s=abc`)
    await expect.element(page.getByTestId('send')).toBeDisabled()
    await userEvent.keyboard('{Enter}')
    await expect.element(composer).toHaveValue('Hello?')
    expect(connection.answers).toHaveLength(0)
    connection.setSwarm(aSwarm())
    await expect.element(page.getByTestId('send')).toBeEnabled()
  })

  test('a lost host and a refused secret are told apart', async () => {
    connection.setState({ kind: 'lost', reason: 'transport close' })
    await expect.element(page.getByTestId('host-lost')).toHaveTextContent('transport close')
    const error = new CrowdError('wrong-secret', 'the secret does not match')
    connection.setState({ kind: 'refused', error })
    await expect.element(page.getByTestId('error-code')).toHaveTextContent('wrong-secret')
    await expect.element(page.getByTestId('host-lost')).not.toBeInTheDocument()
  })

  test('an answer whose host is lost says so, can be stopped, and goes on in its place', async () => {
    const asked = await ask('Why?')
    const status = page.getByTestId('answer-status')
    asked.emit(delta('Be'))
    connection.setState({ kind: 'lost', reason: 'transport close' })
    asked.emit({ kind: 'interrupted', reason: 'transport close' })
    await expect.element(page.getByTestId('waiting')).toHaveTextContent('host is lost')
    // Outside the log, which is busy.
    await expect.element(status).toHaveTextContent('goes on when it is back')
    expect(status.element().closest('[aria-busy="true"]')).toBe(null)
    await expect.element(page.getByTestId('stop')).toBeEnabled()
    connection.setState(anOpenState())
    asked.emit({ kind: 'resumed' })
    await expect.element(page.getByTestId('waiting')).toHaveTextContent('The host is back')
    asked.emit({ kind: 'accepted', stages: [] })
    asked.emit(delta('cause.'))
    asked.emit(end('stop'))
    await expect.element(answer).toHaveTextContent('Because.')
    await expect.element(page.getByTestId('waiting')).not.toBeInTheDocument()
    await expect.poll(() => status.element().textContent.trim()).toBe('')
    expect(connection.answers).toHaveLength(1)
  })

  test('a host that came back may serve another model: the tokenizer is loaded anew', async () => {
    const before = await ask('Before?')
    before.emit(end('stop'))
    await expect.element(page.getByTestId('send')).toBeVisible()
    connection.setState({ kind: 'lost', reason: 'transport close' })
    connection.setState(anOpenState())
    const after = await ask('After?')
    expect([before.client, after.client]).toEqual([1, 2])
    // The same welcome said again is no new one.
    connection.setSwarm(aSwarm())
    expect(connection.clients()).toBe(2)
  })

  test('the other pages keep the secret, and open beside a conversation', async () => {
    const link = page.getByRole('link', { name: /Dashboard/ })
    await expect.element(link).toHaveAttribute('href', '/dashboard#s=abc')
    await expect.element(link).not.toHaveAttribute('target')
    await ask('Hello?')
    await expect.element(link).toHaveAttribute('target', '_blank')
  })
})

test('a tokenizer that could not be loaded can be loaded again', async () => {
  const broken = createFakeConnection(aSwarm())
  broken.setState(anOpenState())
  broken.clientError = new CrowdError('piece-unavailable', 'tokenizer.json: 404')
  const other = createChat({ connection: broken, now: () => 0 })
  await expect.poll(() => other.loadError?.code).toBe('piece-unavailable')
  expect(other.ask('Hello?', {})).toBe(false)
  broken.clientError = null
  other.reloadClient()
  await expect.poll(() => other.blocked).toBe('')
  flushSync()
  expect(other.ask('Hello?', {})).toBe(true)
  other.close()
  expect(broken.closed()).toBe(true)
})
