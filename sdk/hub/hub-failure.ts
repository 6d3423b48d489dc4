import { CrowdError, type ErrorCode } from '../core/errors.ts'
import type { HubAnswer } from './hub-request.ts'

/** Why a request brought nothing, and whether another try may. */
export type HubFailure = {
  readonly error: CrowdError
  /** `later`: it may pass. `limited`: the hub said how long to wait. `moved`: the signed address is spent. */
  readonly next: 'give-up' | 'later' | 'limited' | 'moved'
  readonly waitMs: number
}

/** What was asked for, for messages. */
export type Asked = {
  readonly repo: string
  readonly revision: string | null
  /** A file of it, or null where the repository itself was asked for. */
  readonly path: string | null
  readonly hasToken: boolean
}

/** Where a 429 does not say how long. */
const LIMITED_MS = 30_000
const MESSAGE_MAX = 200

/** The failure that a status other than 2xx stands for. */
export function readFailure(answer: HubAnswer, asked: Asked): HubFailure {
  const { status, fromHub } = answer
  if (status === 429) return limited(answer)
  if (status === 408 || status === 425 || status >= 500) return later(answer)
  // Signed addresses of storage hosts expire; the hub gives another.
  if (!fromHub && [401, 403, 404, 410].includes(status)) {
    const what = `${answer.address.host} refuses the address that the hub gave (${status})`
    return { error: new CrowdError('hub-unavailable', what), next: 'moved', waitMs: 0 }
  }
  const [code, message] = refusal(answer, asked)
  return { error: new CrowdError(code, message), next: 'give-up', waitMs: 0 }
}

function later({ status, address }: HubAnswer): HubFailure {
  const error = new CrowdError('hub-unavailable', `${address.host} answered ${status}`)
  return { error, next: 'later', waitMs: 0 }
}

function limited({ headers, address }: HubAnswer): HubFailure {
  const waitMs = limitMs(headers.get('ratelimit')) ?? retryAfterMs(headers.get('retry-after'))
  const message = `${address.host} answers no more for now: too many requests from here`
  const error = new CrowdError('hub-unavailable', message)
  return { error, next: 'limited', waitMs: waitMs ?? LIMITED_MS }
}

/** `"resolvers";r=0;t=123`: t seconds until the window ends. */
function limitMs(header: string | null): number | null {
  const seconds = /;\s*t=(\d{1,7})\b/.exec(header ?? '')?.[1]
  return seconds === undefined ? null : Number(seconds) * 1000
}

/** Seconds, or a date. */
function retryAfterMs(header: string | null): number | null {
  if (header === null) return null
  const ms = /^\d{1,7}$/.test(header) ? Number(header) * 1000 : Date.parse(header) - Date.now()
  return Number.isFinite(ms) && ms >= 0 ? ms : null
}

function refusal(answer: HubAnswer, asked: Asked): readonly [ErrorCode, string] {
  const { headers, address } = answer
  const { repo, hasToken } = asked
  const revision = asked.revision ?? 'the default branch'
  const code = headers.get('x-error-code')
  if (code === 'GatedRepo') return ['hub-denied', gated(repo, address, hasToken)]
  if (code === 'RepoNotFound') return ['model-not-found', missing(repo, address, hasToken)]
  if (code === 'RevisionNotFound')
    return ['model-not-found', `${repo} has no branch, tag or commit "${revision}".`]
  if (code === 'EntryNotFound')
    return ['model-not-found', `${repo} has no file ${asked.path ?? ''} at ${revision}.`]
  return refusalWithoutCode(answer, asked)
}

function refusalWithoutCode(answer: HubAnswer, asked: Asked): readonly [ErrorCode, string] {
  const { status, headers, address } = answer
  const { repo, hasToken } = asked
  // Without a token a repository that does not exist answers like a private one.
  if (status === 401) {
    return hasToken
      ? ['hub-denied', `${address.host} does not accept the token that was given.`]
      : ['model-not-found', missing(repo, address, false)]
  }
  if (status === 403) return ['hub-denied', `${address.host} does not give ${repo} to this token.`]
  if (status === 404) return ['model-not-found', missing(repo, address, hasToken)]
  const said = headers.get('x-error-message')
  const detail = said === null ? '' : `: ${said.replace(/\p{Cc}/gu, '?').slice(0, MESSAGE_MAX)}`
  return ['hub-unavailable', `${address.host} answered ${status}${detail}`]
}

function gated(repo: string, { origin }: URL, hasToken: boolean): string {
  const page = `${origin}/${repo}`
  return hasToken
    ? `${repo} is gated, and this token's owner was not let in yet: ask for it at ${page}.`
    : `${repo} is gated: ask for it at ${page}, then give a token.`
}

function missing(repo: string, { host }: URL, hasToken: boolean): string {
  return hasToken
    ? `${host} has no model ${repo} that this token may see.`
    : `${host} has no model ${repo}, or it is private and needs a token.`
}
