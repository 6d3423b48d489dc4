import { Template } from '@huggingface/jinja'
import { CrowdError, toCrowdError } from '../core/errors.ts'
import type { ChatMessage } from './tokenizer.ts'

/** Renders messages to the text that the model was trained on. @throws CrowdError bad-request */
export type ChatTemplate = {
  readonly source: string
  render(messages: readonly ChatMessage[]): string
}

/**
 * The model's chat template. A chat_template.jinja goes before what tokenizer_config.json holds (one text or a
 * list of named ones), as in Transformers: a model's makers correct the file, and the settings keep the old text.
 * @param own chat_template.jinja as text, where there is one
 * @throws CrowdError model-unsupported when it can't be parsed; null when there is none
 */
export function readChatTemplate(
  config: Readonly<Record<string, unknown>>,
  own?: string,
): ChatTemplate | null {
  const source = own ?? templateSource(config['chat_template'])
  if (source === null) return null
  let template: Template
  try {
    template = new Template(source)
  } catch (thrown) {
    const { message } = toCrowdError(thrown)
    throw new CrowdError('model-unsupported', `the chat template can't be read: ${message}`, {
      cause: thrown,
    })
  }
  const names = tokenNames(config)
  return {
    source,
    render(messages) {
      try {
        return template.render({ ...names, messages, add_generation_prompt: true })
      } catch (thrown) {
        // Templates refuse by raising, e.g. two turns of the same role in a row.
        const { message } = toCrowdError(thrown)
        throw new CrowdError('bad-request', `the chat template refused: ${message}`, {
          cause: thrown,
        })
      }
    },
  }
}

function templateSource(value: unknown): string | null {
  if (typeof value === 'string') return value
  if (!Array.isArray(value)) return null
  const named = value.filter(isRecord)
  const chosen = named.find((entry) => entry['name'] === 'default') ?? named[0]
  const source = chosen?.['template']
  return typeof source === 'string' ? source : null
}

/** `bos_token` and its like, which are a text or an object with one. */
function tokenNames(config: Readonly<Record<string, unknown>>): Record<string, string> {
  const names: Record<string, string> = {}
  for (const [key, value] of Object.entries(config)) {
    if (!key.endsWith('_token')) continue
    const text = isRecord(value) ? value['content'] : value
    if (typeof text === 'string') names[key] = text
  }
  return names
}

export function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
