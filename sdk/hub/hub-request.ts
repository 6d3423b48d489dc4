import { CrowdError, toCrowdError } from '../core/errors.ts'
import { readBody } from '../storage/read-body.ts'
import { createStallLimit, type StallLimit } from '../storage/stall-limit.ts'
import type { HubOptions } from './hub-options.ts'
import { stoppedError } from './stopped-error.ts'

/** Bytes `start` to `end`, the end not included. */
export type ByteRange = { readonly start: number; readonly end: number }

export type HubAnswer = {
  readonly status: number
  readonly headers: Headers
  /** Of the first answer: what a storage host's answer at the end of the redirects no longer has. */
  readonly firstHeaders: Headers
  /** Where the redirects ended. It may be signed: never to be stored or shown. */
  readonly address: URL
  /** Whether the hub itself answered, and no storage host. */
  readonly fromHub: boolean
  /** The body as it comes; a pause of more than the stall limit is an error. Read it or `cancel`. */
  chunks(): AsyncGenerator<Uint8Array>
  cancel(): Promise<void>
}

const REDIRECTS_MAX = 5
/** A hub looks up, signs and fetches from afar before the first byte comes. */
const STALL_MS = 30_000
const REDIRECTS: readonly number[] = [301, 302, 303, 307, 308]

/**
 * One request, with its redirects followed by hand: so that the token goes to nobody but the hub, and the headers
 * of the first answer are seen.
 * @throws CrowdError hub-unavailable (the network failed, or a redirect that isn't followed), aborted
 */
export async function requestOnce(
  options: HubOptions,
  address: URL,
  request: { readonly signal: AbortSignal; readonly range?: ByteRange },
): Promise<HubAnswer> {
  const stall = createStallLimit(request.signal, options.timing.stallMs ?? STALL_MS)
  let url = address
  let firstHeaders: Headers | null = null
  try {
    for (let hop = 0; hop <= REDIRECTS_MAX; hop++) {
      const response = await options.fetch(url, {
        redirect: 'manual',
        signal: stall.signal,
        headers: headersFor(options, url, request.range),
        referrerPolicy: 'no-referrer',
      })
      stall.progress()
      firstHeaders ??= response.headers
      if (!REDIRECTS.includes(response.status)) {
        const place = { address: url, fromHub: isHub(options, url) }
        return answer(response, { ...place, firstHeaders, stall, outer: request.signal })
      }
      await response.body?.cancel()
      url = nextAddress(url, response.headers.get('location'))
    }
    throw new CrowdError('hub-unavailable', `${address.host} redirects without an end`)
  } catch (thrown) {
    stall.end()
    throw failure(thrown, { stall, outer: request.signal, host: url.host })
  }
}

function isHub({ hubUrl }: HubOptions, url: URL): boolean {
  return url.origin === hubUrl.origin
}

function headersFor(options: HubOptions, url: URL, range?: ByteRange): Record<string, string> {
  return {
    // A length that is known beforehand shows a cut-off body.
    'accept-encoding': 'identity',
    'user-agent': 'crowdinfer',
    ...(range ? { range: `bytes=${range.start}-${range.end - 1}` } : {}),
    ...(options.token !== null && isHub(options, url)
      ? { authorization: `Bearer ${options.token}` }
      : {}),
  }
}

function nextAddress(from: URL, location: string | null): URL {
  if (location === null || !URL.canParse(location, from.href)) {
    throw new CrowdError('hub-unavailable', `${from.host} redirects to nowhere`)
  }
  const to = new URL(location, from)
  if (!['http:', 'https:'].includes(to.protocol)) {
    throw new CrowdError('hub-unavailable', `${from.host} redirects to ${to.protocol}`)
  }
  if (from.protocol === 'https:' && to.protocol === 'http:') {
    throw new CrowdError('hub-unavailable', `${from.host} redirects to ${to.host} without https`)
  }
  return to
}

type Watched = { readonly stall: StallLimit; readonly outer: AbortSignal; readonly host: string }

function answer(
  response: Response,
  context: Omit<Watched, 'host'> & Pick<HubAnswer, 'firstHeaders' | 'address' | 'fromHub'>,
): HubAnswer {
  const { stall, outer, firstHeaders, address, fromHub } = context
  const watched = { stall, outer, host: address.host }
  return {
    status: response.status,
    headers: response.headers,
    firstHeaders,
    address,
    fromHub,
    async *chunks() {
      try {
        for await (const bytes of readBody(response.body, stall.signal)) {
          // A slow disk is no stalled hub: time counts again when the next bytes are asked for.
          stall.end()
          yield bytes
          stall.progress()
        }
      } catch (thrown) {
        throw failure(thrown, watched)
      } finally {
        stall.end()
      }
    },
    async cancel() {
      stall.end()
      await response.body?.cancel().catch(() => undefined)
    },
  }
}

function failure(thrown: unknown, { stall, outer, host }: Watched): CrowdError {
  if (outer.aborted) return stoppedError()
  if (stall.isStalled()) {
    return new CrowdError('hub-unavailable', `${host} sent nothing for too long`)
  }
  if (thrown instanceof CrowdError) return thrown
  // fetch hides the reason one level down.
  const cause = thrown instanceof Error && thrown.cause instanceof Error ? thrown.cause : thrown
  const { message } = toCrowdError(cause)
  return new CrowdError('hub-unavailable', `${host} can't be reached, or hung up: ${message}`, {
    cause: thrown,
  })
}
