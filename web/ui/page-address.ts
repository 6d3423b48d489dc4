import { NAME_MAX_CHARS } from '../../sdk/core/limits.ts'

export type PageName = 'chat' | 'join' | 'dashboard'

/**
 * What a page reads from its own address. Everything is in the fragment, which browsers never send to a
 * server:
 * - `s`: the pool's secret; absent in an open pool
 * - `a`: what proves the operator of the host, dashboard only
 * - `name`: how this device is shown to others
 * - `pledge`: memory to lend, in MB (1 MB = 1,000,000 bytes), contribute page only
 * - `provider`: `webgpu` or `wasm` instead of choosing by a self-test, contribute page only
 * - `auto=1`: contribute without a click, for kiosks and tests
 */
export type PageAddress = {
  readonly secret: string
  readonly adminToken: string
  readonly name: string
  readonly pledgeMb: number | null
  readonly provider: 'webgpu' | 'wasm' | null
  readonly auto: boolean
}

/** @param hash `location.hash`, with or without its `#`. Values that make no sense are left out. */
export function readAddress(hash: string): PageAddress {
  const fields = new URLSearchParams(hash.replace(/^#/, ''))
  const pledge = Number(fields.get('pledge'))
  const provider = fields.get('provider')
  return {
    secret: fields.get('s') ?? '',
    adminToken: fields.get('a') ?? '',
    name: cleanName(fields.get('name') ?? ''),
    pledgeMb: Number.isFinite(pledge) && pledge > 0 ? pledge : null,
    provider: provider === 'webgpu' || provider === 'wasm' ? provider : null,
    auto: fields.get('auto') === '1',
  }
}

const PATHS: Record<PageName, string> = { chat: '/', join: '/join', dashboard: '/dashboard' }

/** A link to another page of the same pool. */
export function pageLink(page: PageName, secret: string): string {
  const fragment = secret === '' ? '' : `#s=${encodeURIComponent(secret)}`
  return PATHS[page] + fragment
}

/** The link that people open on one more device. `origin` as in `location.origin`. */
export function joinLink(origin: string, secret: string): string {
  return origin + pageLink('join', secret)
}

/** Whether an address can only be opened on the machine that shows it. */
export function isLoopback(hostname: string): boolean {
  return (
    hostname === 'localhost' ||
    hostname.endsWith('.localhost') ||
    hostname === '[::1]' ||
    hostname.startsWith('127.')
  )
}

/**
 * The origin at which other devices reach the host: the page's own, or, where that works on this machine
 * only, the first of the host's `origins` that doesn't. Both as in `location.origin`.
 */
export function sharedOrigin(own: string, origins: readonly string[]): string {
  const reachesOthers = (origin: string): boolean =>
    /^https?:/.test(origin) && URL.canParse(origin) && !isLoopback(new URL(origin).hostname)
  if (reachesOthers(own)) return own
  const other = origins.find(reachesOthers)
  return other === undefined ? own : new URL(other).origin
}

export function cleanName(name: string): string {
  return name.trim().slice(0, NAME_MAX_CHARS)
}
