import type { ChatMessage } from '../../sdk/client/tokenizer.ts'
import { FieldError } from './api-error.ts'
import { MESSAGES_MAX } from './api-limits.ts'
import { isObject, refuse, type Reader } from './read-value.ts'

const ROLES: Readonly<Record<string, ChatMessage['role']>> = {
  system: 'system',
  developer: 'system',
  user: 'user',
  assistant: 'assistant',
}

/** Parts of a message that would change the answer and can't be honoured. */
const REFUSED_PARTS = ['tool_calls', 'function_call', 'audio'] as const

/** A conversation in any of the shapes that clients send, as the chat template takes it. */
export const readMessages: Reader<ChatMessage[]> = (value, param) => {
  if (!Array.isArray(value) || value.length === 0)
    return refuse(param, 'a list of at least one message', value)
  if (value.length > MESSAGES_MAX)
    return refuse(param, `a list of at most ${MESSAGES_MAX} messages`, value.length)
  return value.map((message: unknown, index) => readMessage(message, `${param}[${index}]`))
}

function readMessage(message: unknown, param: string): ChatMessage {
  if (!isObject(message)) return refuse(param, 'an object with role and content', message)
  const given = message['role']
  const role = typeof given === 'string' && Object.hasOwn(ROLES, given) ? ROLES[given] : undefined
  if (role === undefined)
    return refuse(`${param}.role`, 'system, developer, user or assistant', given)
  for (const name of REFUSED_PARTS) {
    const part = message[name]
    const asksNothing = part === undefined || part === null || isEmptyList(part)
    if (!asksNothing)
      throw new FieldError(
        `${param}.${name}`,
        `${param}.${name} is not supported`,
        'unsupported_parameter',
      )
  }
  return { role, content: readContent(message['content'], `${param}.content`, role) }
}

/** An assistant's turn may be empty, as clients send it beside what isn't text. */
function readContent(content: unknown, param: string, role: ChatMessage['role']): string {
  if (typeof content === 'string') return content
  if ((content === null || content === undefined) && role === 'assistant') return ''
  if (Array.isArray(content))
    return content.map((part: unknown, index) => readPart(part, `${param}[${index}]`)).join('')
  return refuse(param, 'a text or a list of text parts', content ?? null)
}

function readPart(part: unknown, param: string): string {
  if (!isObject(part)) return refuse(param, 'a part with a type', part)
  const { type, text } = part
  if (type === 'text')
    return typeof text === 'string' ? text : refuse(`${param}.text`, 'a text', text ?? null)
  throw new FieldError(
    param,
    `${param}: parts of type ${JSON.stringify(type) ?? 'none'} are not supported, only text`,
    'unsupported_parameter',
  )
}

function isEmptyList(value: unknown): boolean {
  return Array.isArray(value) && value.length === 0
}
