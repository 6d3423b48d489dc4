import { CrowdError } from '../core/errors.ts'

/** A host answers this at once or not at all. */
const CHECK_MS = 5_000

/**
 * Why no connection to a host comes about: a socket only says that it failed. Null when a host answers.
 * @param origin as in `http://localhost:7080`
 */
export async function checkHost(
  origin: string,
  fetch: typeof globalThis.fetch = globalThis.fetch,
): Promise<CrowdError | null> {
  try {
    const response = await fetch(new URL('/api/swarm', origin), {
      signal: AbortSignal.timeout(CHECK_MS),
    })
    const answer: unknown = await response.json().catch(() => null)
    if (typeof answer === 'object' && answer !== null && 'peers' in answer) return null
    return unreachable(`${origin} answers, but it is no CrowdInfer host`)
  } catch (thrown) {
    const code = codeOf(thrown)
    const reason = REASONS[code]
    if (reason !== undefined) return unreachable(`${origin}: ${reason}`)
    if (/CERT|SIGNED|VERIFY_LEAF|ISSUER/.test(code)) {
      return new CrowdError(
        'host-untrusted',
        `${origin}: this machine does not trust the host's certificate (${code})`,
        { cause: thrown },
      )
    }
    return unreachable(`${origin} does not answer${code === '' ? '' : ` (${code})`}`)
  }
}

const REASONS: Readonly<Record<string, string>> = {
  ECONNREFUSED: 'nothing listens there',
  ENOTFOUND: 'no machine has this name',
  EAI_AGAIN: 'the name could not be looked up',
  EHOSTUNREACH: 'the machine can not be reached',
  ENETUNREACH: 'there is no network to it',
  EPROTO: 'it does not speak https; try the link with http',
  ERR_SSL_WRONG_VERSION_NUMBER: 'it does not speak https; try the link with http',
  ERR_SSL_PACKET_LENGTH_TOO_LONG: 'it does not speak https; try the link with http',
}

function unreachable(message: string): CrowdError {
  return new CrowdError('host-unreachable', message)
}

/** fetch wraps the cause, and several addresses tried make a list of causes. */
function codeOf(thrown: unknown): string {
  if (!(thrown instanceof Error)) return ''
  if ('code' in thrown && typeof thrown.code === 'string') return thrown.code
  if (thrown instanceof AggregateError) return codeOf(thrown.errors[0])
  return codeOf(thrown.cause)
}
