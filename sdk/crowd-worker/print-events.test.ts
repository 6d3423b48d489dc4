import { expect, test } from 'vitest'
import type { WorkerEvent } from './events.ts'
import { createPrinter } from './print-events.ts'

const FETCHING: WorkerEvent = { event: 'fetching', blocks: [0, 3], layers: 'layers 1–2' }
const LINK: WorkerEvent = { event: 'link', peer: 'p2', path: 'direct' }
const ERROR: WorkerEvent = { event: 'error', code: 'storage-full', message: 'no', hint: 'do' }

function kit(json: boolean, isTTY: boolean) {
  const texts = { stdout: '', stderr: '' }
  let now = 0
  const streamOf = (name: keyof typeof texts) => ({
    isTTY,
    columns: 70,
    write: (part: string) => (texts[name] += part),
  })
  const streams = { stdout: streamOf('stdout'), stderr: streamOf('stderr') }
  const print = createPrinter({ json }, streams, () => now)
  const fetch = (percents: readonly number[]): void => {
    for (const percent of percents) {
      now += 1_000
      print({ event: 'progress', doneBytes: percent * 1e6, totalBytes: 1e8 })
    }
  }
  return { print, fetch, texts }
}

test('a log has a line for each tenth of a download, and each download begins anew', () => {
  const { print, fetch, texts } = kit(false, false)
  print(FETCHING)
  fetch([1, 5, 10, 14])
  print(LINK)
  fetch([100])
  print(FETCHING)
  fetch([1])
  expect(texts.stdout.trimEnd().split('\n')).toEqual([
    'preparing layers 1–2',
    'fetching: 0 %, 1.00 MB of 100 MB',
    'fetching: 10 %, 10.0 MB of 100 MB, 4.50 MB/s, 20 s left',
    'linked to p2: direct',
    'fetching: 100 %, 100 MB of 100 MB',
    'preparing layers 1–2',
    'fetching: 0 %, 1.00 MB of 100 MB',
  ])
})

test('on a terminal the bar gives way to what is said in between, also on the other stream', () => {
  const { print, fetch, texts } = kit(false, true)
  fetch([10])
  print(LINK)
  fetch([20])
  print(ERROR)
  const lines = texts.stdout.replaceAll('\u001b[2K', '').split('\n')
  // A carriage return begins the line of a bar anew.
  expect(lines.map((line) => line.split('\r').at(-1))).toEqual([
    'linked to p2: direct',
    expect.stringMatching(/^fetching \[#+\.+\] {2}20 % 20\.0 MB of 100 MB/),
    '',
  ])
  expect(texts.stderr).toBe('storage-full: no\n  do\n')
})

test('as JSON every event is a line, an error too', () => {
  const { print, fetch, texts } = kit(true, true)
  fetch([10])
  print(ERROR)
  expect(texts.stderr).toBe('')
  expect(
    texts.stdout
      .trimEnd()
      .split('\n')
      .map((line): unknown => JSON.parse(line)),
  ).toEqual([
    { time: '1970-01-01T00:00:01.000Z', event: 'progress', doneBytes: 1e7, totalBytes: 1e8 },
    { time: '1970-01-01T00:00:01.000Z', ...ERROR },
  ])
})
