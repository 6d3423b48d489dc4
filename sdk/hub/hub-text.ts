import { CrowdError } from '../core/errors.ts'
import type { Asked, HubFailure } from './hub-failure.ts'
import type { HubOptions } from './hub-options.ts'
import { requestOnce, type HubAnswer } from './hub-request.ts'
import { createRetry, failureOf, thrownFailure } from './hub-retry.ts'

export type HubText = { readonly text: string; readonly headers: Headers }

/**
 * A small file or an answer of the API, whole, with patience for what passes by itself.
 * @throws CrowdError hub-unavailable, hub-denied, model-not-found, aborted
 */
export async function readHubText(
  options: HubOptions,
  address: URL,
  request: Request,
): Promise<HubText> {
  const retry = createRetry(options, request.signal)
  for (;;) {
    const result = await tryOnce(options, address, request)
    if ('text' in result) return result
    await retry.after(result)
  }
}

type Request = { readonly asked: Asked; readonly maxBytes: number; readonly signal: AbortSignal }

async function tryOnce(
  options: HubOptions,
  address: URL,
  { asked, maxBytes, signal }: Request,
): Promise<HubText | HubFailure> {
  try {
    const answer = await requestOnce(options, address, { signal })
    const failure = await failureOf(answer, asked, [200])
    if (failure !== null) return failure
    return { text: await wholeText(answer, maxBytes), headers: answer.headers }
  } catch (thrown) {
    return thrownFailure(thrown)
  }
}

async function wholeText(answer: HubAnswer, maxBytes: number): Promise<string> {
  const decoder = new TextDecoder()
  let text = ''
  let bytes = 0
  for await (const chunk of answer.chunks()) {
    bytes += chunk.length
    if (bytes > maxBytes) {
      const message = `${answer.address.host} answered with more than ${maxBytes} bytes`
      throw new CrowdError('model-unsupported', message)
    }
    text += decoder.decode(chunk, { stream: true })
  }
  return text + decoder.decode()
}
