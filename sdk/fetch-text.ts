import { CrowdError, toCrowdError } from './core/errors.ts'
import { FETCH_STALL_MS, FETCH_TRIES } from './core/limits.ts'
import { readBody } from './storage/read-body.ts'
import { abortedError, type DownloadTiming } from './storage/download.ts'

export type FetchTextDeps = {
  readonly fetch: typeof globalThis.fetch
  readonly timing: DownloadTiming
}

export type FetchTextOptions = {
  /** For the message of an error: "the model's description at /models/a/manifest.json". */
  readonly what: string
  readonly maxChars: number
  readonly signal?: AbortSignal
}

/** Pauses of half a second, one, and two: a host that restarts is back within them. */
const PAUSE_MS = 500

/**
 * A small text over HTTP, past the browser's cache. What may pass by itself (no answer, a busy or failing
 * host) is tried again after growing pauses, `FETCH_TRIES` times in all.
 * @throws CrowdError piece-unavailable, aborted
 */
export async function fetchText(
  url: URL,
  deps: FetchTextDeps,
  options: FetchTextOptions,
): Promise<string> {
  const signal = options.signal ?? new AbortController().signal
  for (let attempt = 0; ; attempt++) {
    if (signal.aborted) throw abortedError()
    const result = await tryOnce(url, deps.fetch, { maxChars: options.maxChars, signal })
    if (result.kind === 'text') return result.text
    if (!result.passing || attempt === FETCH_TRIES - 1) {
      throw new CrowdError('piece-unavailable', `${options.what}: ${result.reason}`)
    }
    const jitter = 0.5 + deps.timing.random() / 2
    await deps.timing.wait(PAUSE_MS * 2 ** attempt * jitter, signal)
  }
}

type Tried =
  | { readonly kind: 'text'; readonly text: string }
  | { readonly kind: 'failed'; readonly reason: string; readonly passing: boolean }

/** @throws CrowdError aborted */
async function tryOnce(
  url: URL,
  fetch: typeof globalThis.fetch,
  limits: { readonly maxChars: number; readonly signal: AbortSignal },
): Promise<Tried> {
  try {
    const signal = AbortSignal.any([limits.signal, AbortSignal.timeout(FETCH_STALL_MS)])
    const response = await fetch(url, { cache: 'no-cache', signal })
    const { ok, status } = response
    if (!ok) return failed(`the host answered ${status}`, isPassing(status))
    const decoder = new TextDecoder()
    let text = ''
    for await (const bytes of readBody(response.body, signal)) {
      text += decoder.decode(bytes, { stream: true })
      if (text.length > limits.maxChars) return failed('it is larger than it may be', false)
    }
    return { kind: 'text', text: text + decoder.decode() }
  } catch (thrown) {
    if (limits.signal.aborted) throw abortedError()
    return failed(toCrowdError(thrown).message, true)
  }
}

function failed(reason: string, passing: boolean): Tried {
  return { kind: 'failed', reason, passing }
}

/** Timeouts, too many requests, and what goes wrong inside a host or the proxy before it. */
function isPassing(status: number): boolean {
  return status === 408 || status === 425 || status === 429 || status >= 500
}
