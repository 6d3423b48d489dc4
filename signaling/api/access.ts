import { CrowdError } from '../../sdk/core/errors.ts'
import { HttpError } from './api-error.ts'
import { ANSWERS_PER_CALLER, createCallerRates } from './caller-rates.ts'

/** What a request says of where it comes from. */
export type Caller = {
  readonly authorization: string | undefined
  /** Of the socket. */
  readonly address: string
}

/** What a request wants: to see what the host serves, or anything else. */
export type Wanted = 'models' | 'answers'

export type AccessDeps = {
  /** The id of the key that was given, null for none of ours, and whether there are keys at all. */
  check(given: string): Promise<{ readonly any: boolean; readonly id: string | null }>
  /** Whether this is the pool's secret; in an open pool anything is. */
  knowsSecret(given: string): boolean
  /** Monotonic, ms. */
  now(): number
}

/**
 * Who may use `/v1`. Where there are keys: whoever has one. Where there are none: in an open pool everybody,
 * in a private one whoever gives the pool's secret as the key; the models, which the pages show too, are then no
 * secret either. Where a request comes from opens nothing: a proxy or a tunnel that ends on this machine makes
 * any caller look like a program here.
 */
export type Access = {
  /** @returns who it is, for `enter`. @throws CrowdError wrong-secret, too-many-requests, storage-failed */
  admit(caller: Caller, wanted: Wanted): Promise<string>
  /** Room for some answers at once, until the returned function is called. @throws CrowdError too-many-requests */
  enter(caller: string, answers: number): () => void
}

export function createAccess(deps: AccessDeps): Access {
  const rates = createCallerRates(deps.now)

  async function identify(caller: Caller, wanted: Wanted): Promise<string | null> {
    const given = /^Bearer +(.+?) *$/i.exec(caller.authorization ?? '')?.[1] ?? ''
    const { any, id } = await deps.check(given)
    if (any) return id === null ? null : `key ${id}`
    return wanted === 'models' || deps.knowsSecret(given) ? `address ${caller.address}` : null
  }

  return {
    async admit(caller, wanted) {
      const id = await identify(caller, wanted)
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
