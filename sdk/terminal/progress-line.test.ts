import { expect, test } from 'vitest'
import { createProgressLine } from './progress-line.ts'

function kit(terminal: { isTTY: boolean; columns?: number }) {
  let text = ''
  let now = 0
  const output = { ...terminal, write: (part: string) => (text += part) }
  return {
    line: createProgressLine('downloading', output, () => now),
    text: () => text,
    pass: (ms: number) => (now += ms),
  }
}

test('without a terminal there is one line for each tenth', () => {
  const { line, text, pass } = kit({ isTTY: false })
  for (let done = 0; done <= 1000; done++) {
    pass(10)
    line.show({ done: done * 1e6, total: 1e9, unit: 'bytes' })
  }
  line.close()
  const lines = text().trimEnd().split('\n')
  expect(lines).toHaveLength(11)
  expect(lines[5]).toBe('downloading: 50 %, 500 MB of 1.00 GB, 100 MB/s, 5 s left')
  expect(lines[10]).toBe('downloading: 100 %, 1.00 GB of 1.00 GB')
})

test.each([200, 80, 44, 20])('on a terminal of %i columns the line fits', (columns) => {
  const { line, text, pass } = kit({ isTTY: true, columns })
  line.show({ done: 0, total: 4e9, unit: 'bytes' })
  pass(1_000)
  line.show({ done: 1e9, total: 4e9, unit: 'bytes' })
  line.close()
  const drawn = text().trimEnd().split('\r\u001b[2K').slice(1)
  expect(drawn).toHaveLength(2)
  for (const one of drawn) expect(one.length).toBeLessThan(columns)
  expect(drawn[1]).toContain('downloading')
  expect(drawn[1]?.includes('[#')).toBe(columns >= 80)
})

test('a remark in between does not break the bar', () => {
  const { line, text } = kit({ isTTY: true, columns: 80 })
  line.show({ done: 1, total: 2, unit: 'blocks' })
  line.say('waiting')
  line.close()
  expect(text().endsWith('50 % 1 of 2\r\u001b[2Kwaiting\n')).toBe(true)
})

test('speed is that of the last seconds, not of the whole time', () => {
  const { line, text, pass } = kit({ isTTY: false })
  line.show({ done: 0, total: 100e6, unit: 'bytes' })
  for (let second = 0; second < 60; second++) {
    pass(1_000)
    line.show({ done: 0, total: 100e6, unit: 'bytes' })
  }
  for (let second = 1; second <= 6; second++) {
    pass(1_000)
    line.show({ done: second * 10e6, total: 100e6, unit: 'bytes' })
  }
  expect(text()).toMatch(/60 %, 60\.0 MB of 100 MB, 10\.0 MB\/s, 4 s left/)
})
