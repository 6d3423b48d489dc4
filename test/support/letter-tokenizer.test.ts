import { describeTokenizerContract } from '../contracts/tokenizer.contract.ts'
import { createLetterTokenizer, LETTER_CONTROL } from './letter-tokenizer.ts'

describeTokenizerContract('one token for each character', {
  make: createLetterTokenizer,
  control: LETTER_CONTROL,
  texts: ['Hello, world!', 'one two  three', ' spaces ', 'line\nbreak\n\n', '{"json": [1, 2]}'],
})
