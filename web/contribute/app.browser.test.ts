import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { page } from 'vitest/browser'
import { CrowdError } from '../../sdk/core/errors.ts'
import { createContributeWorld, type ContributeWorld } from '../fixtures/contribute-world.ts'
import { peerId } from '../fixtures/snapshots.ts'

let world: ContributeWorld

beforeEach(() => {
  world = createContributeWorld()
})

afterEach(() => world.close())

const phase = page.getByTestId('phase')

describe('the contribute page', () => {
  test('does nothing before the consent, and looks at the pool meanwhile', async () => {
    world.open('#s=abc')
    await expect.element(page.getByTestId('pool')).toHaveTextContent('open a tab')
    await expect.element(page.getByText('may be able to reconstruct prompts')).toBeVisible()
    expect(world.workers).toHaveLength(0)
    await page.getByTestId('start').click()
    await world.started()
    expect(world.persisted).toBe(1)
    expect(world.watched[0]?.closed()).toBe(true)
  })

  test('starts with the name and the pledge that the owner chose, and remembers them', async () => {
    world.open('#s=abc')
    await page.getByTestId('device-name').fill('  kitchen tablet ')
    await page.getByTestId('pledge-mb').fill('2')
    await page.getByTestId('start').click()
    await world.started()
    expect(world.options[0]).toMatchObject({
      secret: 'abc',
      name: 'kitchen tablet',
      pledgeBytes: 2_000_000,
      prefer: 'auto',
    })
    expect([world.memory.name(), world.memory.pledgeMb()]).toEqual(['kitchen tablet', 2])
  })

  test('an address may say everything, for kiosks and tests', async () => {
    world.open('#s=x&name=kiosk&pledge=4&provider=wasm&auto=1')
    await world.started()
    expect(world.options[0]).toMatchObject({
      secret: 'x',
      name: 'kiosk',
      pledgeBytes: 4_000_000,
      prefer: 'wasm',
    })
    expect(world.watched.every((connection) => connection.closed())).toBe(true)
  })

  test('shows the download, then what it holds and why, and with what it computes', async () => {
    world.open('#s=abc&auto=1')
    const worker = await world.started()
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

  test('a spare shows how far it is with the layers that it stores ahead', async () => {
    world.open('#s=abc&auto=1')
    const worker = await world.started()
    worker.change({ phase: 'waiting', doneBytes: 1_000_000, totalBytes: 4_000_000 })
    const bar = page.getByLabelText('Storing layers, to step in at once')
    await expect.element(bar).toHaveAttribute('value', '1000000')
    worker.change({ doneBytes: 4_000_000 })
    await expect.element(bar).not.toBeInTheDocument()
    await expect.element(page.getByTestId('bytes')).toHaveTextContent('4 MB of 4 MB')
  })

  test('two links to the same device are two rows', async () => {
    world.open('#s=abc&auto=1')
    const worker = await world.started()
    const link = { peer: peerId('p2'), path: 'direct', state: 'open', rttMs: 2 } as const
    worker.change({ phase: 'serving', links: [link, { ...link, state: 'opening', path: null }] })
    await expect.poll(() => document.querySelectorAll('[data-testid=link]').length).toBe(2)
  })

  test('blocked storage is said, with the reason', async () => {
    world.open('#s=abc&auto=1')
    const worker = await world.started()
    worker.change({ storage: { usedBytes: 0, freeBytes: null, persistent: true } })
    await expect.element(page.getByTestId('storage')).toHaveTextContent('kept in this browser')
    await expect.element(page.getByTestId('memory-only')).not.toBeInTheDocument()
    world.options[0]?.onStorageFallback?.('a private window')
    worker.change({ storage: { usedBytes: 0, freeBytes: null, persistent: false } })
    await expect.element(page.getByTestId('memory-only')).toHaveTextContent('memory only')
    await expect.element(page.getByTestId('memory-only')).toHaveTextContent('a private window')
  })

  test('a browser that cannot keep the pieces contributes all the same', async () => {
    world.persistError = new Error('not allowed')
    const contribution = world.open('#s=abc')
    await page.getByTestId('start').click()
    await world.started()
    expect(contribution.report()).toContain('keeping pieces: not allowed')
  })

  test('whoever left can have the stored layers deleted', async () => {
    world.open('#s=abc&auto=1')
    await world.started()
    await page.getByTestId('leave').click()
    await page.getByTestId('delete-stored').click()
    await expect.element(page.getByTestId('stored')).toHaveTextContent('were deleted')
    expect(world.deletions).toBe(1)
    await expect.element(page.getByTestId('delete-stored')).not.toBeInTheDocument()
  })

  test('a failure shows code, cause and next step, and can be tried again', async () => {
    world.open('#s=abc&auto=1')
    const worker = await world.started()
    worker.change({
      phase: 'failed',
      error: new CrowdError('out-of-memory', 'allocation of layer 4 failed'),
    })
    await expect.element(page.getByTestId('error-code')).toHaveTextContent('out-of-memory')
    await expect.element(page.getByTestId('error')).toHaveTextContent('allocation of layer 4')
    await expect.element(page.getByTestId('error')).toHaveTextContent('Pledge less')
    await expect.element(page.getByRole('button', { name: 'Copy report' })).toBeVisible()
    await page.getByTestId('again').click()
    await expect.poll(() => world.workers.length).toBe(2)
    expect(worker.calls).toContain('leave')
  })

  test('a worker that cannot be made is a failure too', async () => {
    world.makeError = new CrowdError('storage-failed', 'the database did not open')
    const contribution = world.open('#s=abc&auto=1')
    await expect.element(phase).toHaveAttribute('data-phase', 'failed')
    await expect.element(page.getByTestId('error')).toHaveTextContent('did not open')
    expect(contribution.report()).toContain('storage-failed')
    expect(contribution.report()).not.toContain('abc')
  })

  test('a changed pledge reaches the worker at once', async () => {
    const contribution = world.open('#s=abc&auto=1')
    const worker = await world.started()
    contribution.setPledge(6)
    expect(worker.calls).toContain('pledge 6000000')
    contribution.setPledge(Number.NaN)
    expect(contribution.pledgeMb).toBe(6)
  })

  test('an insecure address says what is off and what to ask the host for', async () => {
    world.open('#s=abc', { secureContext: false, crossOriginIsolated: false })
    await expect.element(page.getByTestId('insecure')).toHaveTextContent('--https')
    await expect.element(page.getByTestId('not-isolated')).not.toBeInTheDocument()
  })

  test('a page without isolation says that threads are off', async () => {
    world.open('#s=abc', { crossOriginIsolated: false })
    await expect.element(page.getByTestId('not-isolated')).toBeVisible()
  })
})
