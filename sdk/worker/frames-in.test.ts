import { expect, test } from 'vitest'
import type { SessionId } from '../core/ids.ts'
import type { ActivationFrame, Frame } from '../core/wire/frame.ts'
import { createFramesIn } from './frames-in.ts'

const HEAD = { session: 7 as SessionId, epoch: 1, step: 0, computeMicros: 0 }

const rows = (position: number, tokenCount: number, sample: boolean): ActivationFrame => ({
  kind: 'activation',
  ...HEAD,
  position,
  tokenCount,
  hiddenSize: 1,
  sample,
  data: new Float32Array(tokenCount),
})
const token = (position: number): Frame => ({ kind: 'token', ...HEAD, position, token: 4 })

/** A text of 3 tokens of a prompt and 2 of an answer. */
const framesIn = () => createFramesIn({ promptLength: 3, answered: 2, contextLength: 7 })

test('SE5 SE12 rows come one behind the other, and a token is sampled after the text so far', () => {
  const frames = framesIn()
  frames.begin(1)
  for (const frame of [rows(1, 2, false), rows(3, 2, true), rows(5, 1, true)]) frames.take(frame)
  // Row 6 is the last one of the context.
  frames.take(rows(6, 1, true))
  expect(() => frames.take(rows(7, 1, true))).toThrow('of a context of 7')
})

test.each([
  ['sampled after too early', [rows(0, 2, true)]],
  ['not sampled after', [rows(0, 5, false)]],
  ['said twice', [rows(0, 1, false), rows(0, 1, false)]],
  ['behind a hole', [rows(0, 1, false), rows(2, 3, true)]],
  ['begun elsewhere than the host said', [rows(1, 4, true)]],
  ['behind a token that is not chosen yet', [rows(0, 6, true)]],
])('SE5 SE12 rows that are %s are a bad frame', (_, all) => {
  const frames = framesIn()
  frames.begin(0)
  expect(() => all.forEach(frames.take)).toThrow('bad frame')
})

test('SE1 SE5 rows that overtook the word to start must begin where it says', () => {
  const [right, wrong] = [framesIn(), framesIn()]
  for (const frames of [right, wrong]) frames.take(rows(2, 1, false))
  right.begin(2)
  right.take(rows(3, 2, true))
  expect(() => wrong.begin(0)).toThrow('where 0 was next')
})

test('SE12 a token comes for the position behind the text so far, and then for the next', () => {
  for (const positions of [[4], [6], [5, 5], [5, 7], [5, 6, 7]]) {
    const frames = framesIn()
    expect(() => positions.map(token).forEach(frames.take)).toThrow('bad frame')
  }
  const frames = framesIn()
  for (const position of [5, 6]) frames.take(token(position))
})
