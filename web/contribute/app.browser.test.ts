import { mount, unmount } from 'svelte'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { page } from 'vitest/browser'
import { CrowdError } from '../../sdk/core/errors.ts'
import type { BrowserWorkerOptions } from '../../sdk/index.browser.ts'
import { createFakeConnection, type FakeConnection } from '../fixtures/fake-connection.ts'
import { createFakeWorker, type FakeWorker } from '../fixtures/fake-worker.ts'
import { aSwarm, peerId } from '../fixtures/snapshots.ts'
import { readAddress } from '../ui/page-address.ts'
import { createSafeStorage } from '../ui/safe-storage.ts'
import App from './App.svelte'
import { Contribution } from './contribution.svelte.ts'
import type { Device } from './device.ts'
import type { TabLock } from './tab-lock.ts'
import { createTabMemory, type TabMemory } from './tab-memory.ts'

const device: Device = {
  label: 'Test tab',
  userAgent: 'test',
  secureContext: true,
  crossOriginIsolated: true,
  cores: 2,
  memoryGb: 4,
  webGpu: false,
}

let workers: FakeWorker[]
let options: BrowserWorkerOptions[]
let watched: FakeConnection[]
let app: object | null
let memory: TabMemory
let elsewhere: boolean
let persisted: number
let deletions: number
let makeError: CrowdError | null
let persistError: Error | null

beforeEach(() => {
  workers = []
  options = []
  watched = []
  app = null
  elsewhere = false
  persisted = 0
  deletions = 0
  makeError = null
  persistError = null
  const blocked = (): Storage => {
    throw new Error('blocked')
  }
  memory = createTabMemory(createSafeStorage(blocked), createSafeStorage(blocked))
})

afterEach(async () => {
  if (app !== null) await unmount(app)
})

function openPage(hash: string, change: Partial<Device> = {}): Contribution {
  const lock: TabLock = {
    heldElsewhere: () => Promise.resolve(elsewhere),
    take: () => undefined,
    release: () => undefined,
  }
  const contribution = new Contribution({
    createWorker(wanted) {
      options.push(wanted)
      if (makeError !== null) return Promise.reject(makeError)
      const worker = createFakeWorker()
      workers.push(worker)
      return Promise.resolve(worker)
    },
    address: readAddress(hash),
    device: { ...device, ...change },
    memory,
    lock,
    persist() {
      persisted += 1
      return persistError === null ? Promise.resolve(true) : Promise.reject(persistError)
    },
    deletePieces() {
      deletions += 1
      return Promise.resolve()
    },
    build: '/assets/test.js',
    now: () => 0,
  })
  app = mount(App, {
    target: document.body,
    props: {
      contribution,
      secret: 'abc',
      watchPool() {
        const connection = createFakeConnection(aSwarm({ complete: false, advice: 'open a tab' }))
        watched.push(connection)
        return connection
      },
    },
  })
  void contribution.open()
  return contribution
}

/** A reload: the old page is gone, what the tab remembers stays. */
async function reload(hash: string): Promise<Contribution> {
  if (app !== null) await unmount(app)
  return openPage(hash)
}

const phase = page.getByTestId('phase')

async function started(): Promise<FakeWorker> {
  await expect.poll(() => workers.at(-1)?.calls).toContain('start')
  const worker = workers.at(-1)
  if (worker === undefined) throw new Error('no worker was made')
  return worker
}

describe('the contribute page', () => {
  test('does nothing before the consent, and looks at the pool meanwhile', async () => {
    openPage('#s=abc')
    await expect.element(page.getByTestId('pool')).toHaveTextContent('open a tab')
    await expect.element(page.getByText('may be able to reconstruct prompts')).toBeVisible()
    expect(workers).toHaveLength(0)
    await page.getByTestId('start').click()
    await started()
    expect(persisted).toBe(1)
    expect(watched[0]?.closed()).toBe(true)
  })

  test('starts with the name and the pledge that the owner chose, and remembers them', async () => {
    openPage('#s=abc')
    await page.getByTestId('device-name').fill('  kitchen tablet ')
    await page.getByTestId('pledge-mb').fill('2')
    await page.getByTestId('start').click()
    await started()
    expect(options[0]).toMatchObject({
      secret: 'abc',
      name: 'kitchen tablet',
      pledgeBytes: 2_000_000,
      prefer: 'auto',
    })
    expect([memory.name(), memory.pledgeMb()]).toEqual(['kitchen tablet', 2])
  })

  test('an address may say everything, for kiosks and tests', async () => {
    openPage('#s=x&name=kiosk&pledge=4&provider=wasm&auto=1')
    await started()
    expect(options[0]).toMatchObject({
      secret: 'x',
      name: 'kiosk',
      pledgeBytes: 4_000_000,
      prefer: 'wasm',
    })
    expect(watched.every((connection) => connection.closed())).toBe(true)
  })

  test('shows the download, then what it holds and why, and with what it computes', async () => {
    openPage('#s=abc&auto=1')
    const worker = await started()
    worker.change({
      phase: 'fetching',
      range: { start: 4, end: 8 },
      reason: 'weakest span',
      doneBytes: 1_000_000,
      totalBytes: 4_000_000,
      fetchedBytes: 600_000,
    })
    await expect.element(phase).toHaveAttribute('data-phase', 'fetching')
    await expect.element(page.getByLabelText('Download')).toHaveAttribute('value', '1000000')
    await expect
      .element(page.getByTestId('bytes'))
      .toHaveTextContent('1 MB of 4 MB: 600 kB over the network, 400 kB from')
    worker.change({ peerBytes: 200_000 })
    await expect
      .element(page.getByTestId('bytes'))
      .toHaveTextContent('600 kB over the network (200 kB from other devices), 400 kB from')
    worker.change({
      phase: 'serving',
      runner: { provider: 'wasm', threads: 2, notes: ['WebGPU: no adapter'] },
      storage: { usedBytes: 4_000_000, freeBytes: null, persistent: false },
      links: [{ peer: peerId('p2'), path: 'relay', state: 'open', rttMs: 14 }],
      laps: 7,
      tokens: 31,
    })
    await expect.element(phase).toHaveTextContent('Serving')
    await expect.element(page.getByTestId('holding')).toHaveTextContent('layers 4–6 and head')
    await expect.element(page.getByTestId('reason')).toHaveTextContent('weakest span')
    await expect.element(page.getByTestId('provider')).toHaveTextContent('WASM, 2 threads')
    await expect.element(page.getByTestId('provider-notes')).toHaveTextContent('no adapter')
    await expect.element(page.getByTestId('storage')).toHaveTextContent('memory only')
    await expect.element(page.getByTestId('link')).toHaveTextContent('relayed by the host')
    await expect.element(page.getByTestId('tokens')).toHaveTextContent('31')
    const root = page.getByTestId('contribution')
    await expect.element(root).toHaveAttribute('data-range', '4-8')
    await expect.element(root).toHaveAttribute('data-fetched-bytes', '600000')
  })

  test('two links to the same device are two rows', async () => {
    openPage('#s=abc&auto=1')
    const worker = await started()
    const link = { peer: peerId('p2'), path: 'direct', state: 'open', rttMs: 2 } as const
    worker.change({ phase: 'serving', links: [link, { ...link, state: 'opening', path: null }] })
    await expect.poll(() => document.querySelectorAll('[data-testid=link]').length).toBe(2)
  })

  test('blocked storage is said, with the reason', async () => {
    openPage('#s=abc&auto=1')
    const worker = await started()
    worker.change({ storage: { usedBytes: 0, freeBytes: null, persistent: true } })
    await expect.element(page.getByTestId('storage')).toHaveTextContent('kept in this browser')
    await expect.element(page.getByTestId('memory-only')).not.toBeInTheDocument()
    options[0]?.onStorageFallback?.('a private window')
    worker.change({ storage: { usedBytes: 0, freeBytes: null, persistent: false } })
    await expect.element(page.getByTestId('memory-only')).toHaveTextContent('memory only')
    await expect.element(page.getByTestId('memory-only')).toHaveTextContent('a private window')
  })

  test('a browser that cannot keep the pieces contributes all the same', async () => {
    persistError = new Error('not allowed')
    const contribution = openPage('#s=abc')
    await page.getByTestId('start').click()
    await started()
    expect(contribution.report()).toContain('keeping pieces: not allowed')
  })

  test('pause stays over a reload until resume', async () => {
    openPage('#s=abc')
    await page.getByTestId('start').click()
    const first = await started()
    await page.getByTestId('pause').click()
    await expect.element(phase).toHaveAttribute('data-phase', 'paused')
    expect(first.calls).toContain('pause')
    await reload('#s=abc')
    await expect.element(phase).toHaveAttribute('data-phase', 'paused')
    expect(workers).toHaveLength(1)
    await page.getByTestId('resume').click()
    await started()
    expect(workers).toHaveLength(2)
  })

  test('a reloaded tab goes on without asking again, a left one asks', async () => {
    openPage('#s=abc')
    await page.getByTestId('start').click()
    await started()
    await reload('#s=abc')
    await expect.poll(() => workers.length).toBe(2)
    await started()
    await page.getByTestId('leave').click()
    await expect.element(phase).toHaveAttribute('data-phase', 'left')
    expect(workers[1]?.calls).toContain('leave')
    await reload('#s=abc')
    await expect.element(page.getByTestId('start')).toBeVisible()
    expect(workers).toHaveLength(2)
  })

  test('whoever left can have the stored layers deleted', async () => {
    openPage('#s=abc&auto=1')
    await started()
    await page.getByTestId('leave').click()
    await page.getByTestId('delete-stored').click()
    await expect.element(page.getByTestId('stored')).toHaveTextContent('were deleted')
    expect(deletions).toBe(1)
    await expect.element(page.getByTestId('delete-stored')).not.toBeInTheDocument()
  })

  test('a second tab is told so, and may go on with one click', async () => {
    elsewhere = true
    openPage('#s=abc')
    await expect.element(page.getByTestId('other-tab')).toBeVisible()
    await page.getByRole('button', { name: 'Contribute with this tab too' }).click()
    await started()
  })

  test('a failure shows code, cause and next step, and can be tried again', async () => {
    openPage('#s=abc&auto=1')
    const worker = await started()
    worker.change({
      phase: 'failed',
      error: new CrowdError('out-of-memory', 'allocation of layer 4 failed'),
    })
    await expect.element(page.getByTestId('error-code')).toHaveTextContent('out-of-memory')
    await expect.element(page.getByTestId('error')).toHaveTextContent('allocation of layer 4')
    await expect.element(page.getByTestId('error')).toHaveTextContent('Pledge less')
    await expect.element(page.getByRole('button', { name: 'Copy report' })).toBeVisible()
    await page.getByTestId('again').click()
    await expect.poll(() => workers.length).toBe(2)
    expect(worker.calls).toContain('leave')
  })

  test('a worker that cannot be made is a failure too', async () => {
    makeError = new CrowdError('storage-failed', 'the database did not open')
    const contribution = openPage('#s=abc&auto=1')
    await expect.element(phase).toHaveAttribute('data-phase', 'failed')
    await expect.element(page.getByTestId('error')).toHaveTextContent('did not open')
    expect(contribution.report()).toContain('storage-failed')
    expect(contribution.report()).not.toContain('abc')
  })

  test('a changed pledge reaches the worker at once', async () => {
    const contribution = openPage('#s=abc&auto=1')
    const worker = await started()
    contribution.setPledge(6)
    expect(worker.calls).toContain('pledge 6000000')
    contribution.setPledge(Number.NaN)
    expect(contribution.pledgeMb).toBe(6)
  })

  test('a page that goes away says goodbye', async () => {
    const contribution = openPage('#s=abc&auto=1')
    const worker = await started()
    contribution.hide()
    expect(worker.calls).toContain('leave')
    expect(memory.wish()).toBe('contribute')
  })

  test('a tab that the browser killed while loading does not start again by itself', async () => {
    openPage('#s=abc')
    await page.getByTestId('start').click()
    const worker = await started()
    worker.change({ phase: 'loading', range: { start: 1, end: 4 } })
    await reload('#s=abc')
    await expect.element(page.getByTestId('killed')).toHaveTextContent('layers 1–3')
    expect(workers).toHaveLength(1)
  })

  test('an insecure address says what is off and what to ask the host for', async () => {
    openPage('#s=abc', { secureContext: false, crossOriginIsolated: false })
    await expect.element(page.getByTestId('insecure')).toHaveTextContent('--https')
    await expect.element(page.getByTestId('not-isolated')).not.toBeInTheDocument()
  })

  test('a page without isolation says that threads are off', async () => {
    openPage('#s=abc', { crossOriginIsolated: false })
    await expect.element(page.getByTestId('not-isolated')).toBeVisible()
  })
})
