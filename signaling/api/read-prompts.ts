import { PROMPT_MAX_TOKENS } from '../../sdk/core/limits.ts'
import { CHOICES_MAX } from './api-limits.ts'
import { refuse, type Reader } from './read-value.ts'

/** What one choice continues: text as it is, or token ids. */
export type TextPrompt = { readonly prompt: string } | { readonly promptIds: readonly number[] }

const WANTED = 'a text, token ids, or a list of either'

/** The prompt of /v1/completions: one, or several to be answered in one request. */
export const readPrompts: Reader<TextPrompt[]> = (value, param) => {
  if (typeof value === 'string') return [{ prompt: value }]
  if (!Array.isArray(value) || value.length === 0) return refuse(param, WANTED, value)
  if (typeof value[0] === 'number') return [readIds(value, param)]
  if (value.length > CHOICES_MAX)
    return refuse(param, `at most ${CHOICES_MAX} prompts`, value.length)
  return value.map((one: unknown, index) => {
    if (typeof one === 'string') return { prompt: one }
    if (Array.isArray(one)) return readIds(one, `${param}[${index}]`)
    return refuse(`${param}[${index}]`, 'a text or token ids', one)
  })
}

function readIds(ids: readonly unknown[], param: string): TextPrompt {
  if (ids.length > PROMPT_MAX_TOKENS)
    return refuse(param, `at most ${PROMPT_MAX_TOKENS} token ids`, ids.length)
  const promptIds = ids.map((id, index) =>
    typeof id === 'number' && Number.isInteger(id) && id >= 0
      ? id
      : refuse(`${param}[${index}]`, 'a token id', id),
  )
  return { promptIds }
}
