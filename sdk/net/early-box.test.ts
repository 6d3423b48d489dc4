import { expect, test } from 'vitest'
import { createEarlyBox } from './early-box.ts'

test('PA3 hands out the asked attempt, keeps newer ones and drops older ones', () => {
  const box = createEarlyBox<string>(8, 8)
  box.put('p', 1, 'old')
  box.put('p', 2, 'a')
  box.put('p', 3, 'new')
  box.put('p', 2, 'b')
  expect(box.take('p', 2)).toEqual(['a', 'b'])
  expect(box.take('p', 1)).toEqual([])
  expect(box.take('p', 3)).toEqual(['new'])
  expect(box.take('q', 1)).toEqual([])
})

test('PA3 holds a bounded number of pairs and of things for each; the pair heard of last stays', () => {
  const box = createEarlyBox<number>(2, 3)
  for (let thing = 0; thing < 10; thing += 1) box.put('a', 1, thing)
  box.put('b', 1, 1)
  box.put('a', 1, 99)
  box.put('c', 1, 1)
  expect(box.take('b', 1)).toEqual([])
  expect(box.take('a', 1)).toEqual([0, 1, 2])
  expect(box.take('c', 1)).toEqual([1])
})
