import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { createOrtQueue } from './ort-queue.ts'

beforeEach(() => {
  vi.useFakeTimers()
})
afterEach(() => {
  vi.useRealTimers()
})

describe('ort queue', () => {
  it('never runs two jobs at once, in order, and survives rejected ones', async () => {
    const queue = createOrtQueue()
    const log: string[] = []
    let running = 0
    const job = (name: string, fails: boolean) => async (): Promise<string> => {
      expect(++running).toBe(1)
      await Promise.resolve()
      await Promise.resolve()
      running--
      log.push(name)
      if (fails) throw new Error(name)
      return name
    }
    const results = await Promise.allSettled([
      queue.run('a', 100, job('a', false)),
      queue.run('b', 100, job('b', true)),
      queue.run('c', 100, () => {
        throw new Error('at once')
      }),
      queue.run('d', 100, job('d', false)),
    ])
    expect(log).toEqual(['a', 'b', 'd'])
    expect(results.map(({ status }) => status)).toEqual([
      'fulfilled',
      'rejected',
      'rejected',
      'fulfilled',
    ])
    expect(vi.getTimerCount()).toBe(0)
  })

  it('gives a hanging job up, starts nothing beside it, and goes on when it settles', async () => {
    const queue = createOrtQueue()
    let finish = (): void => undefined
    const hung = queue.run('step', 50, () => new Promise<void>((resolve) => (finish = resolve)))
    const waiting = queue.run('next', 50, () => Promise.resolve('ran'))
    const both = Promise.allSettled([hung, waiting])
    await vi.advanceTimersByTimeAsync(51)
    const [first, second] = await both
    expect(first).toMatchObject({ reason: { code: 'timeout' } })
    expect(second).toMatchObject({ reason: { code: 'stage-failed' } })
    finish()
    await vi.advanceTimersByTimeAsync(0)
    await expect(queue.run('later', 50, () => Promise.resolve('ran'))).resolves.toBe('ran')
  })

  it('counts the limit from the job, not from the call', async () => {
    const queue = createOrtQueue()
    const slow = (): Promise<string> =>
      new Promise((resolve) => setTimeout(() => resolve('done'), 40))
    const all = Promise.all([1, 2, 3].map((n) => queue.run(String(n), 50, slow)))
    await vi.advanceTimersByTimeAsync(130)
    await expect(all).resolves.toEqual(['done', 'done', 'done'])
  })
})
