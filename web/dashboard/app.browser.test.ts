import { mount, unmount } from 'svelte'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { page } from 'vitest/browser'
import { createFakeConnection, type FakeConnection } from '../fixtures/fake-connection.ts'
import { anOpenState, aPeer, aRequest, aSwarm, pairId, peerId } from '../fixtures/snapshots.ts'
import { createSwarmView } from '../ui/swarm-view.svelte.ts'
import App from './App.svelte'

let connection: FakeConnection
let app: object

beforeEach(() => {
  connection = createFakeConnection(null)
  connection.setState(anOpenState())
  app = mount(App, {
    target: document.body,
    props: { view: createSwarmView(connection), secret: 'abc' },
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
