import { expect, test } from 'vitest'
import { aWorkerSnapshot } from '../fixtures/snapshots.ts'
import { CRASHES_MAX, NO_TRAIL, SURVIVED_MS, type CrashTrail } from './crash-trail.ts'
import { createCrashWatch } from './crash-watch.ts'

const LOADING = aWorkerSnapshot({ phase: 'loading', range: { start: 1, end: 4 } })
const SERVING = aWorkerSnapshot({ phase: 'serving', range: { start: 1, end: 4 } })

/** One device; `open` is a load of the page. */
function device() {
  let trail: CrashTrail = NO_TRAIL
  let now = 0
  let writes = 0
  const memory = {
    trail: () => trail,
    setTrail(next: CrashTrail) {
      trail = next
      writes += 1
    },
  }
  return {
    open: (tab: string) => createCrashWatch({ tab, memory, now: () => now }),
    pass: (ms: number) => (now += ms),
    trail: () => trail,
    writes: () => writes,
  }
}

test('a tab killed while it loads is known to the next one, and after two nothing begins by itself', () => {
  const { open, trail } = device()
  open('a').follow(LOADING)
  const second = open('b')
  expect(second.look([])).toContain('loading layers 1–3')
  expect(second.isStopped).toBe(false)
  second.follow(SERVING)
  const third = open('c')
  expect(third.look([])).toContain('serving')
  expect(third.isStopped).toBe(true)
  expect(trail().crashes).toBe(CRASHES_MAX)
})

test('a tab that rests, spares or is out of sight leaves no crumb', () => {
  const { open } = device()
  const tab = open('a')
  tab.follow(LOADING)
  tab.rest()
  expect(open('b').look([])).toBe('')
  tab.follow(LOADING)
  tab.follow(aWorkerSnapshot({ phase: 'waiting' }))
  expect(open('b').look([])).toBe('')
  tab.follow(LOADING)
  tab.setHidden(true)
  tab.follow(LOADING)
  expect(open('b').look([])).toBe('')
  tab.setHidden(false)
  tab.follow(LOADING)
  expect(open('b').look(['a'])).toBe('')
  expect(open('b').look([])).toContain('loading')
})

test('whoever serves long enough in sight has shown that the device can', () => {
  const { open, pass, trail, writes } = device()
  open('a').follow(LOADING)
  const tab = open('b')
  tab.look([])
  tab.follow(SERVING)
  pass(SURVIVED_MS / 2)
  tab.setHidden(true)
  tab.follow(SERVING)
  pass(SURVIVED_MS)
  tab.setHidden(false)
  tab.follow(SERVING)
  pass(SURVIVED_MS - 1)
  tab.follow(SERVING)
  expect(trail().crashes).toBe(1)
  pass(2)
  tab.follow(SERVING)
  expect(trail()).toEqual(NO_TRAIL)
  const before = writes()
  tab.follow(SERVING)
  expect(writes()).toBe(before)
  expect(open('c').look([])).toBe('')
})
