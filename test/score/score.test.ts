import { expect, test } from 'vitest'
import { missingWords } from './score.ts'

test('a word counts as a whole word, whatever its case and the signs around it', () => {
  expect(missingWords('The Ring, of course!', [['ring'], ['course']])).toEqual([])
  expect(missingWords('It is a string.', [['ring']])).toEqual([['ring']])
  expect(missingWords("I don't know.", [["don't", 'not']])).toEqual([])
})

test('every list needs one of its words', () => {
  expect(missingWords('a cat and a dog', [['cat', 'lion'], ['dog']])).toEqual([])
  expect(missingWords('a cat', [['cat'], ['dog', 'wolf']])).toEqual([['dog', 'wolf']])
})
