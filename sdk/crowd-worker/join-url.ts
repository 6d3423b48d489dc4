import { CrowdError } from '../core/errors.ts'

/** What a join link says: where the host is, and the pool's secret (empty in an open pool). */
export type JoinLink = { readonly origin: string; readonly secret: string }

const EXAMPLE = 'http://192.168.1.20:7080/join#s=…'

/**
 * Reads a link as the host prints it.
 * @throws CrowdError bad-option
 * @example readJoinLink('http://localhost:7080/join#s=abc') // { origin: 'http://localhost:7080', secret: 'abc' }
 */
export function readJoinLink(text: string): JoinLink {
  const url = URL.canParse(text) ? new URL(text) : null
  if (url === null || !['http:', 'https:'].includes(url.protocol) || url.hostname === '') {
    throw new CrowdError('bad-option', `"${text}" is no join link; one looks like ${EXAMPLE}`)
  }
  return { origin: url.origin, secret: new URLSearchParams(url.hash.slice(1)).get('s') ?? '' }
}
