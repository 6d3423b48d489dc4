import { AutoTokenizer, env } from '@huggingface/transformers'
import { readFileSync } from 'node:fs'
import { beforeAll, expect, test } from 'vitest'
import { createTokenizer } from '../../sdk/client/tokenizer.hf.ts'
import type { ChatMessage, Tokenizer } from '../../sdk/client/tokenizer.ts'
import { builtinDirectory } from '../../sdk/index.node.ts'

const MODEL = 'crowdtalk-2.6m'
const CONVERSATION: ChatMessage[] = [
  { role: 'system', content: 'Be brief.' },
  { role: 'user', content: 'What is a ring?  Two spaces, an é, a 🦊 and\na new line.' },
  { role: 'assistant', content: 'A circle of tabs.' },
  { role: 'user', content: 'Thanks!' },
]

let reference: Awaited<ReturnType<typeof AutoTokenizer.from_pretrained>>
let ours: Tokenizer

beforeAll(async () => {
  env.localModelPath = builtinDirectory()
  env.allowRemoteModels = false
  reference = await AutoTokenizer.from_pretrained(MODEL)
  const read = (file: string): unknown =>
    JSON.parse(readFileSync(`${builtinDirectory()}/${MODEL}/${file}`, 'utf8'))
  ours = createTokenizer({
    tokenizerJson: read('tokenizer.json'),
    tokenizerConfig: read('tokenizer_config.json'),
  })
})

test('the chat template gives the ids that transformers.js gives', () => {
  const expected = reference.apply_chat_template([...CONVERSATION], {
    add_generation_prompt: true,
    tokenize: true,
    return_tensor: false,
    return_dict: false,
  })
  expect(ours.encodeChat(CONVERSATION)).toEqual(expected)
})

test.each(CONVERSATION.map(({ content }) => content))(
  'the text %j has the same ids and comes back',
  (text) => {
    const ids = ours.encode(text)
    expect(ids).toEqual(reference.encode(text))
    expect(ours.decode(ids)).toBe(text)
    expect(reference.decode(ids, { skip_special_tokens: true })).toBe(text)
  },
)
