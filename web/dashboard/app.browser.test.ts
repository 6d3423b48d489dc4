import { mount, unmount } from 'svelte'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { page, userEvent } from 'vitest/browser'
import { createFakeConnection, type FakeConnection } from '../fixtures/fake-connection.ts'
import { anOpenState, aPeer, aRequest, aSwarm, pairId, peerId } from '../fixtures/snapshots.ts'
import { createSwarmView } from '../ui/swarm-view.svelte.ts'
import App from './App.svelte'
import { createModelChoice } from './model-choice.svelte.ts'
import type { ModelList, ModelsApi } from './models-api.ts'

let connection: FakeConnection
let app: object
let models: FakeModels

/** The host's list of models, and what was chosen of it. */
type FakeModels = ModelsApi & {
  list: ModelList
  readonly chosen: (readonly [model: string, anyway: boolean])[]
  reads: number
}

function aModel(change: Partial<ModelList['models'][number]> = {}): ModelList['models'][number] {
  return {
    name: 'crowdtalk-2.6m',
    builtin: true,
    served: false,
    layers: 6,
    contextLength: 512,
    bytes: 10_200_000,
    problem: '',
    ...change,
  }
}

function createFakeModels(): FakeModels {
  const fake: FakeModels = {
    list: {
      operator: true,
      served: 'crowdtalk-2.6m',
      failure: null,
      models: [
        aModel({ served: true }),
        aModel({ name: 'tall', builtin: false, layers: 32, bytes: 4_100_000_000 }),
        aModel({
          name: '<b>torn</b>',
          builtin: false,
          layers: null,
          problem: 'a piece is missing',
        }),
      ],
    },
    chosen: [],
    reads: 0,
    read() {
      fake.reads += 1
      return Promise.resolve(fake.list)
    },
    choose(model, anyway) {
      fake.chosen.push([model, anyway])
      return Promise.resolve(fake.list)
    },
  }
  return fake
}

beforeEach(() => {
  models = createFakeModels()
  connection = createFakeConnection(null)
  connection.setState(anOpenState())
  app = mount(App, {
    target: document.body,
    props: {
      view: createSwarmView(connection),
      secret: 'abc',
      choice: createModelChoice(models),
    },
  })
})

afterEach(async () => {
  await unmount(app)
})

const p1 = peerId('p1')
const p2 = peerId('p2')
const ring = aSwarm({
  peers: [
    aPeer({ peer: p1, name: '<i>attic</i>', range: { start: 0, end: 4 } }),
    aPeer({ peer: p2, name: 'phone', range: { start: 4, end: 8 }, hidden: true, stepMs: 5 }),
  ],
  links: [
    {
      pair: pairId('a'),
      from: p1,
      to: p2,
      state: 'open',
      path: 'relay',
      rttMs: 14.2,
      relayedBytes: 2_200_000,
    },
  ],
  requests: [
    aRequest({
      stages: [p1, p2],
      hops: [
        { computeMs: 10, wireMs: 0.5 },
        { computeMs: 5, wireMs: 1 },
      ],
    }),
    aRequest({ id: 'r2', state: 'running', lapMs: null }),
  ],
})

const count = (testid: string): number =>
  document.querySelectorAll(`[data-testid="${testid}"]`).length

describe('the dashboard', () => {
  test('shows who holds what, how devices reach each other and where the time goes', async () => {
    connection.setSwarm(ring)
    await expect.element(page.getByTestId('ring-state')).toHaveAttribute('data-complete', 'true')
    expect(count('layer-row')).toBe(2)
    expect(count('cell-ready')).toBe(8)
    await expect.element(page.getByTestId('link')).toHaveTextContent('relayed by the host')
    await expect.element(page.getByTestId('link')).toHaveTextContent('2.2 MB')
    await expect.element(page.getByTestId('chain')).toHaveTextContent('computes 10 ms')
    await expect.element(page.getByTestId('chain')).toHaveTextContent('relayed by the host, 1.0 ms')
    await expect
      .element(page.getByTestId('lap-bars'))
      .toHaveTextContent('compute 15 ms (75%), wire 1.5 ms on 2 hops, waiting 3.5 ms')
    expect(count('request')).toBe(2)
    await expect.element(page.getByTestId('peers')).toHaveTextContent('hidden tab')
  })

  test('shows what the planner wants next, and laps as predicted and as measured', async () => {
    const [done] = ring.requests
    if (done === undefined) throw new Error('no request')
    const devices = [
      {
        peer: p2,
        range: { start: 0, end: 4 },
        keep: null,
        bytes: 9,
        reason: 'makes the ring faster',
      },
    ]
    connection.setSwarm({
      ...ring,
      plan: { lapMs: 20, stages: 2, missing: [], advice: '', devices },
      requests: [{ ...done, predictedLapMs: 18, predictionMeasured: false }],
    })
    const outcome = page.getByTestId('plan-outcome')
    await expect.element(outcome).toHaveTextContent('predicted to take 20 ms, which is 50 tokens')
    const row = page.getByTestId('plan-row')
    await expect.element(row).toHaveTextContent('layers 4–6 and head')
    await expect.element(row).toHaveTextContent('makes the ring faster')
    await expect.element(page.getByTestId('predicted')).toHaveTextContent('18 ms (guessed)')
    await expect
      .element(page.getByTestId('lap-bars'))
      .toHaveTextContent('Lap predicted 18 ms, measured 20 ms')
    const advice = '2.1 GB short: one more device of 4 GB'
    connection.setSwarm({
      ...ring,
      plan: { lapMs: null, stages: 0, missing: [{ start: 0, end: 4 }], advice, devices: [] },
    })
    await expect.element(outcome).toHaveTextContent(advice)
  })

  test('names from other devices are shown as text', async () => {
    connection.setSwarm(ring)
    await expect.element(page.getByTestId('peers')).toHaveTextContent('<i>attic</i>')
    expect(document.querySelector('i')).toBeNull()
  })

  test('an incomplete ring shows the missing blocks and the advice', async () => {
    const [first] = ring.peers
    connection.setSwarm({
      ...ring,
      complete: false,
      missing: [{ start: 4, end: 8 }],
      advice: '3 of 6 layers missing',
      peers: first === undefined ? [] : [first],
    })
    await expect.element(page.getByTestId('advice')).toHaveTextContent('3 of 6 layers missing')
    const copies = [...document.querySelectorAll('[data-testid=copies]')]
    expect(copies.map((cell) => cell.textContent)).toEqual(['1', '1', '1', '1', '0', '0', '0', '0'])
  })

  test('invites with a link and a QR code before anybody came', async () => {
    await expect.element(page.getByTestId('join-link')).toHaveValue(`${location.origin}/join#s=abc`)
    const path = page.getByTestId('qr').element().querySelector('path')
    expect(path?.getAttribute('d')?.length).toBeGreaterThan(1_000)
  })

  test('on this machine it invites to the network address that the host knows', async () => {
    const qr = () => page.getByTestId('qr').element().querySelector('path')?.getAttribute('d')
    await expect.element(page.getByText('works on this machine only')).toBeVisible()
    const before = qr()
    connection.setSwarm({ ...ring, origins: ['http://192.168.1.4:7080'] })
    await expect
      .element(page.getByTestId('join-link'))
      .toHaveValue('http://192.168.1.4:7080/join#s=abc')
    await expect.element(page.getByText('works on this machine only')).not.toBeInTheDocument()
    expect(qr()).not.toBe(before)
    const here = page.getByRole('link', { name: 'Open it in a new tab here' })
    await expect.element(here).toHaveAttribute('href', '/join#s=abc')
  })

  test('says that the state is old when the host is lost', async () => {
    connection.setSwarm(ring)
    connection.setState({ kind: 'lost', reason: 'transport close' })
    await expect.element(page.getByText('last known state')).toBeVisible()
  })
})

describe('the choice of a model', () => {
  const serveTall = () => page.getByRole('button', { name: 'Serve tall' })

  test('lists what is known, and asks before it changes anything', async () => {
    connection.setSwarm(ring)
    await expect.element(page.getByTestId('models')).toHaveTextContent('32 layers · 4.1 GB')
    await expect.element(page.getByTestId('models')).toHaveTextContent('<b>torn</b>')
    await expect.element(page.getByTestId('models')).toHaveTextContent('a piece is missing')
    await expect.element(page.getByRole('button', { name: 'Serve <b>torn</b>' })).toBeDisabled()
    await serveTall().click()
    await expect.element(page.getByTestId('confirm')).toHaveTextContent('Serve tall instead of')
    await userEvent.keyboard('{Escape}')
    await expect.element(page.getByTestId('confirm')).not.toBeVisible()
    expect(models.chosen).toEqual([])
    await expect.element(serveTall()).toHaveFocus()
    await userEvent.keyboard('{Enter}')
    await page.getByTestId('confirm-yes').click()
    await expect.poll(() => models.chosen).toEqual([['tall', false]])
  })

  test('shows each step, with the progress of every device', async () => {
    connection.setSwarm({
      ...ring,
      change: { name: 'tall', phase: 'preparing', step: 'opening the tokenizer' },
    })
    await expect.element(page.getByTestId('change')).toHaveTextContent('opening the tokenizer')
    const before = models.reads
    connection.setSwarm({
      ...ring,
      complete: false,
      change: { name: 'tall', phase: 'loading', step: '' },
      peers: [
        aPeer({ peer: p1, name: 'attic', state: 'fetching', doneBytes: 1e6, totalBytes: 4e6 }),
        aPeer({ peer: p2, name: 'phone', totalBytes: 2e6 }),
      ],
    })
    const bars = page.getByRole('progressbar')
    await expect.element(bars.first()).toHaveAccessibleName('attic: fetching, 1 MB of 4 MB')
    await expect.element(bars.first()).toHaveAttribute('value', '1000000')
    expect(bars.all()).toHaveLength(2)
    await expect.poll(() => models.reads).toBeGreaterThan(before)
  })

  test('says why a model is not served, and lets the operator insist', async () => {
    const message = "the devices here can't hold all of tall"
    models.list = {
      ...models.list,
      failure: { model: 'tall', code: 'model-too-large', message },
    }
    connection.setSwarm(ring)
    await expect.element(page.getByTestId('error')).toHaveTextContent(message)
    await page.getByTestId('anyway').click()
    await expect.poll(() => models.chosen).toEqual([['tall', true]])
  })

  test('a visitor sees the list and can choose nothing', async () => {
    models.list = { ...models.list, operator: false }
    connection.setSwarm(ring)
    await expect.element(page.getByText('Whoever runs the host can choose')).toBeVisible()
    await expect.element(serveTall()).not.toBeInTheDocument()
  })
})
