import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import scores from '../../tools/builtin-model/scores.json'
import { missingWords, QUESTIONS, rejectedWords, RIGHT_MIN, score } from './score.ts'

test('the built-in model answers enough of the 100 questions, the same ones as in PyTorch', async () => {
  const data = await mkdtemp(join(tmpdir(), 'crowdinfer-score-'))
  try {
    const { asked, right, wrong } = await score('crowdtalk-2.6m', QUESTIONS, data)
    expect(asked).toBe(100)
    expect(right).toBeGreaterThanOrEqual(RIGHT_MIN)
    expect(wrong.map(({ id }) => id)).toEqual(scores['crowdtalk-2.6m'].wrong)
  } finally {
    await rm(data, { recursive: true, force: true })
  }
}, 300_000)

test('a word counts as a whole word, whatever its case and the signs around it', () => {
  expect(missingWords('The Ring, of course!', [['ring'], ['course']])).toEqual([])
  expect(missingWords('It is a string.', [['ring']])).toEqual([['ring']])
  expect(missingWords("I don't know.", [['don', 'not']])).toEqual([])
})

test('every list needs one of its words', () => {
  expect(missingWords('a cat and a dog', [['cat', 'lion'], ['dog']])).toEqual([])
  expect(missingWords('a cat', [['cat'], ['dog', 'wolf']])).toEqual([['dog', 'wolf']])
})

test('a word that must not be there is found, as a whole word', () => {
  expect(rejectedWords('1, 2, 3, 4, 5, 6.', ['6'])).toEqual(['6'])
  expect(rejectedWords('1, 2, 3, 4, 5, 16.', ['6'])).toEqual([])
  expect(rejectedWords('1, 2, 3, 4, 5.')).toEqual([])
})
