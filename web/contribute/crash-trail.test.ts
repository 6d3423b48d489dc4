import { expect, test } from 'vitest'
import { begun, ended, judge, NO_TRAIL, readTrail, survived } from './crash-trail.ts'

test('a tab that ended in peace, or still lives, was not killed', () => {
  const trail = begun(begun(NO_TRAIL, 'a', 'loading layer 1'), 'b', 'serving layer 2')
  expect(judge(ended(trail, 'a'), ['b'])).toEqual({ trail: ended(trail, 'a'), killed: '' })
  expect(judge(NO_TRAIL, [])).toEqual({ trail: NO_TRAIL, killed: '' })
})

test('each kill counts once, with what was done then, until a tab survives', () => {
  const first = judge(begun(NO_TRAIL, 'a', 'loading layer 1'), [])
  expect(first).toEqual({ trail: { crumbs: {}, crashes: 1 }, killed: 'loading layer 1' })
  expect(judge(first.trail, []).killed).toBe('')
  const second = judge(begun(first.trail, 'b', 'serving layer 1'), [])
  expect(second.trail.crashes).toBe(2)
  expect(survived(begun(second.trail, 'c', 'serving'), 'c')).toEqual(NO_TRAIL)
})

test('tabs that went down with their browser are one crash', () => {
  const { trail, killed } = judge(begun(begun(NO_TRAIL, 'a', 'one'), 'b', 'two'), [])
  expect(trail).toEqual({ crumbs: {}, crashes: 1 })
  expect(killed).toBe('two')
})

test.each([
  ['nothing', null],
  ['no JSON', '{'],
  ['a number', '7'],
  ['null', 'null'],
  ['wrong fields', '{"crumbs":null,"crashes":"many"}'],
  ['a negative count', '{"crashes":-3}'],
])('storage with %s is no trail', (_, text) => {
  expect(readTrail(text)).toEqual(NO_TRAIL)
})

test('a trail is read as it was written, apart from crumbs that are none', () => {
  const trail = begun({ ...NO_TRAIL, crashes: 1 }, 'a', 'loading')
  expect(readTrail(JSON.stringify(trail))).toEqual(trail)
  expect(readTrail('{"crumbs":{"a":"loading","b":3},"crashes":1}')).toEqual(trail)
})
