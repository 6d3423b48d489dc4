import { CrowdError } from '../../sdk/core/errors.ts'
import { HttpError } from './api-error.ts'
import { ANSWERS_PER_CALLER, createCallerRates } from './caller-rates.ts'

/** What a request says of where it comes from. */
export type Caller = {
  readonly authorization: string | undefined
  /** Of the socket. */
  readonly address: string
  /** The headers of these names. */
  readonly host: string | undefined
  readonly origin: string | undefined
  /** Whether a proxy says that it passed the request on. */
  readonly forwarded: boolean
}

export type AccessDeps = {
  /** The id of the key that was given, null for none of ours, and whether there are keys at all. */
  check(given: string): Promise<{ readonly any: boolean; readonly id: string | null }>
  /** Whether this is the pool's secret; in an open pool anything is. */
  knowsSecret(given: string): boolean
  /** Monotonic, ms. */
  now(): number
}

/**
 * Who may use `/v1`. Where there are keys: whoever has one. Where there are none: in an open pool everybody;
 * in a private one whoever gives the pool's secret as the key, and programs on the host's own machine, so that
 * a first try needs nothing. A proxy or a page of another site that reaches this machine is no such program.
 */
export type Access = {
  /** @returns who it is, for `enter`. @throws CrowdError wrong-secret, too-many-requests, storage-failed */
  admit(caller: Caller): Promise<string>
  /** Room for some answers at once, until the returned function is called. @throws CrowdError too-many-requests */
  enter(caller: string, answers: number): () => void
}

export function createAccess(deps: AccessDeps): Access {
  const rates = createCallerRates(deps.now)

  async function identify(caller: Caller): Promise<string | null> {
    const given = /^Bearer +(.+?) *$/i.exec(caller.authorization ?? '')?.[1] ?? ''
    const { any, id } = await deps.check(given)
    if (any) return id === null ? null : `key ${id}`
    return deps.knowsSecret(given) || isLocal(caller) ? `address ${caller.address}` : null
  }

  return {
    async admit(caller) {
      const id = await identify(caller)
      const waitMs = rates.take(id ?? `stranger ${caller.address}`)
      if (waitMs > 0)
        throw new HttpError('too-many-requests', 'too many requests in a short time', {
          status: 429,
          apiCode: 'rate_limit_exceeded',
          retryAfterS: Math.ceil(waitMs / 1_000),
        })
      if (id === null)
        throw new CrowdError(
          'wrong-secret',
          caller.authorization === undefined
            ? 'this API needs a key: Authorization: Bearer KEY'
            : 'this is no key of this API',
        )
      return id
    },
    enter(caller, answers) {
      const leave = rates.enter(caller, answers)
      if (leave !== null) return leave
      throw new CrowdError(
        'too-many-requests',
        `more than ${ANSWERS_PER_CALLER} answers of yours would wait or run at once`,
      )
    },
  }
}

/** A program on this machine, asking for this machine by a name that no other site can have. */
function isLocal({ address, host, origin, forwarded }: Caller): boolean {
  if (forwarded || !isLoopback(address)) return false
  if (!isLoopback(hostnameOf(`http://${host ?? ''}`))) return false
  return origin === undefined || isLoopback(hostnameOf(origin))
}

function hostnameOf(url: string): string {
  return URL.canParse(url) ? new URL(url).hostname : ''
}

function isLoopback(name: string): boolean {
  const bare = name.replace(/^\[|\]$/g, '').replace(/^::ffff:/, '')
  return bare === 'localhost' || bare === '::1' || /^127\.\d+\.\d+\.\d+$/.test(bare)
}
