import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { page } from 'vitest/browser'
import { CrowdError } from '../../sdk/core/errors.ts'
import { createContributeWorld, type ContributeWorld } from '../fixtures/contribute-world.ts'
import { SURVIVED_MS } from './crash-trail.ts'

let world: ContributeWorld

beforeEach(() => {
  world = createContributeWorld()
})

afterEach(() => world.close())

const phase = page.getByTestId('phase')

describe('the life of a contributing tab', () => {
  test('a second tab is told so, may go on with one click, and shares what the device lends', async () => {
    world.others = ['first']
    world.open('#s=abc')
    await expect.element(page.getByTestId('other-tab')).toBeVisible()
    await page.getByTestId('pledge-mb').fill('100')
    await page.getByRole('button', { name: 'Contribute with this tab too' }).click()
    const worker = await world.started()
    expect(world.options[0]?.pledgeBytes).toBe(50_000_000)
    await expect.element(page.getByTestId('sharers')).toHaveTextContent('50 MB of 100 MB')
    world.others = []
    world.newsOfTabs()
    await expect.poll(() => worker.calls).toContain('pledge 100000000')
    await expect.element(page.getByTestId('sharers')).not.toBeInTheDocument()
    world.others = ['third', 'fourth']
    world.newsOfTabs()
    await expect.poll(() => worker.calls).toContain('pledge 33333333')
  })

  test('a tab whose address says what it lends shares with nobody', async () => {
    world.others = ['first']
    world.open('#s=abc&auto=1&pledge=100')
    await world.started()
    expect(world.options[0]?.pledgeBytes).toBe(100_000_000)
    await expect.element(page.getByTestId('sharers')).not.toBeInTheDocument()
  })

  test('after a crash the tab lends half; after the second it begins only when asked to', async () => {
    world.open('#s=abc')
    await page.getByTestId('pledge-mb').fill('100')
    await page.getByTestId('start').click()
    const first = await world.started()
    first.change({ phase: 'loading', range: { start: 1, end: 4 } })
    await world.reload('#s=abc')
    await expect.poll(() => world.options.length).toBe(2)
    expect(world.options[1]?.pledgeBytes).toBe(50_000_000)
    await expect.element(page.getByTestId('killed')).toHaveTextContent('layers 1–3')
    await expect.element(page.getByTestId('killed')).toHaveTextContent('50 MB')
    await expect.poll(() => world.workers.at(-1)?.calls).toContain('start')
    world.workers.at(-1)?.change({ phase: 'serving', range: { start: 1, end: 2 } })
    await world.reload('#s=abc&auto=1')
    await expect.element(page.getByTestId('stopped')).toHaveTextContent('25 MB')
    expect(world.workers).toHaveLength(2)
    await page.getByRole('button', { name: 'Try anew' }).click()
    await expect.poll(() => world.workers.at(-1)?.calls).toContain('start')
    const third = world.workers.at(-1)
    third?.change({ phase: 'serving', range: { start: 1, end: 2 } })
    world.now += SURVIVED_MS + 1
    third?.change({ laps: 1 })
    await world.reload('#s=abc&auto=1')
    await expect.poll(() => world.workers.length).toBe(4)
    expect(world.options[3]?.pledgeBytes).toBe(25_000_000)
    await expect.element(page.getByTestId('killed')).not.toBeInTheDocument()
  })

  test('a page that was put away, or hidden, was not killed', async () => {
    const first = world.open('#s=abc')
    await page.getByTestId('start').click()
    const worker = await world.started()
    worker.change({ phase: 'loading', range: { start: 1, end: 4 } })
    first.hide()
    const contribution = await world.reload('#s=abc')
    await expect.poll(() => world.workers.length).toBe(2)
    contribution.setHidden(true)
    world.workers.at(-1)?.change({ phase: 'loading', range: { start: 1, end: 4 } })
    await world.reload('#s=abc')
    await expect.poll(() => world.workers.length).toBe(3)
    await expect.element(page.getByTestId('killed')).not.toBeInTheDocument()
  })

  test('whoever leaves lets answers end first, or leaves at once with a second click', async () => {
    world.open('#s=abc&auto=1')
    const worker = await world.started()
    worker.change({ phase: 'serving', sessions: 2 })
    await page.getByTestId('leave').click()
    await expect.element(phase).toHaveTextContent('Leaving: handing over 2 answers…')
    worker.change({ sessions: 1 })
    await expect.element(phase).toHaveTextContent('Leaving: handing over 1 answer…')
    expect(worker.calls).toContain('pause')
    expect(worker.calls).not.toContain('leave')
    worker.change({ sessions: 0 })
    await expect.element(phase).toHaveAttribute('data-phase', 'left')
    expect(worker.calls).toContain('leave')
    await page.getByTestId('start').click()
    await expect.poll(() => world.workers.at(-1)?.calls).toContain('start')
    world.workers.at(-1)?.change({ phase: 'serving', sessions: 1 })
    await page.getByTestId('leave').click()
    await page.getByRole('button', { name: 'Leave now' }).click()
    await expect.element(phase).toHaveAttribute('data-phase', 'left')
    await page.getByTestId('start').click()
    await expect.poll(() => world.workers.length).toBe(3)
    await expect.poll(() => world.workers.at(-1)?.calls).toContain('start')
    world.workers.at(-1)?.change({ phase: 'serving', sessions: 1 })
    await page.getByTestId('leave').click()
    await expect.element(phase).toHaveTextContent('Leaving')
    for (const task of world.late.splice(0)) task()
    await expect.element(phase).toHaveAttribute('data-phase', 'left')
  })

  test('a paused tab says how many answers are still to go to others', async () => {
    world.open('#s=abc&auto=1')
    const worker = await world.started()
    worker.change({ phase: 'paused', sessions: 1 })
    await expect.element(phase).toHaveTextContent('Paused: handing over 1 answer…')
    await expect.element(page.getByText('hold the same layers')).toBeVisible()
    worker.change({ sessions: 0 })
    await expect.element(phase).toHaveTextContent(/^Paused$/)
    await expect.element(page.getByText('hold the same layers')).not.toBeInTheDocument()
  })

  test('after a lack of memory the next try lends half', async () => {
    const contribution = world.open('#s=abc&auto=1')
    contribution.setPledge(64)
    const worker = await world.started()
    worker.change({ phase: 'failed', error: new CrowdError('out-of-memory', 'too large') })
    await page.getByTestId('again').click()
    await expect.poll(() => world.workers.length).toBe(2)
    expect(world.options[1]?.pledgeBytes).toBe(32_000_000)
  })

  test('the worker hears of a freeze and of the thaw', async () => {
    const contribution = world.open('#s=abc&auto=1')
    const worker = await world.started()
    contribution.freeze()
    contribution.thaw()
    expect(worker.calls.slice(-2)).toEqual(['sleep', 'wake'])
  })

  test('a page that goes away says goodbye', async () => {
    const contribution = world.open('#s=abc&auto=1')
    const worker = await world.started()
    contribution.hide()
    expect(worker.calls).toContain('leave')
    expect(world.memory.wish()).toBe('contribute')
  })

  test('pause stays over a reload until resume', async () => {
    world.open('#s=abc')
    await page.getByTestId('start').click()
    const first = await world.started()
    await page.getByTestId('pause').click()
    await expect.element(phase).toHaveAttribute('data-phase', 'paused')
    expect(first.calls).toContain('pause')
    await world.reload('#s=abc')
    await expect.element(phase).toHaveAttribute('data-phase', 'paused')
    expect(world.workers).toHaveLength(1)
    await page.getByTestId('resume').click()
    await world.started()
    expect(world.workers).toHaveLength(2)
  })

  test('a reloaded tab goes on without asking again, a left one asks', async () => {
    world.open('#s=abc')
    await page.getByTestId('start').click()
    await world.started()
    await world.reload('#s=abc')
    await expect.poll(() => world.workers.length).toBe(2)
    await world.started()
    await page.getByTestId('leave').click()
    await expect.element(phase).toHaveAttribute('data-phase', 'left')
    expect(world.workers[1]?.calls).toContain('leave')
    await world.reload('#s=abc')
    await expect.element(page.getByTestId('start')).toBeVisible()
    expect(world.workers).toHaveLength(2)
  })
})
