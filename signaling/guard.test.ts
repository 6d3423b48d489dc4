import { expect, test } from 'vitest'
import { createGuard } from './guard.ts'

test('a fault becomes one line, once, and the next task runs', () => {
  const lines: string[] = []
  const guard = createGuard((line) => lines.push(line))
  const fail = (text: string) => () => {
    throw new Error(text)
  }
  let ran = 0
  const broken = fail('no\nsuch map')
  for (let round = 0; round < 5; round++) guard('tick', broken)
  guard('tick', () => (ran += 1))
  guard('relay', fail('other'))
  expect(ran).toBe(1)
  expect(lines).toHaveLength(2)
  expect(lines[0]).toMatch(/^fault in tick: no such map \(at .*guard\.test/)
  expect(lines[1]).toMatch(/^fault in relay: other/)
})
