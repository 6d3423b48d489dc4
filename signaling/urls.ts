import { networkInterfaces } from 'node:os'

export type HostUrls = {
  /** Chat on this machine. */
  readonly chat: string
  /** Join on this machine. */
  readonly join: string
  readonly dashboard: string
  /** Base URL for OpenAI clients on this machine; no secret in it. */
  readonly api: string
  /** Join for other devices, one for each address of this machine. */
  readonly lanJoin: readonly string[]
  /** The same pages work on the LAN only where the host listens on it. */
  readonly secure: boolean
}

type Interfaces = ReturnType<typeof networkInterfaces>

/** IPv4 addresses by which other devices may reach this machine, the likeliest first. */
export function lanAddresses(interfaces: Interfaces = networkInterfaces()): string[] {
  const found = Object.entries(interfaces).flatMap(([name, addresses]) =>
    (addresses ?? [])
      .filter(
        (one) => one.family === 'IPv4' && !one.internal && !one.address.startsWith('169.254.'),
      )
      .map((one) => ({ name, address: one.address })),
  )
  return found.sort((a, b) => rank(a) - rank(b)).map((one) => one.address)
}

/** Home and office networks before those of containers and virtual machines. */
function rank(one: { readonly name: string; readonly address: string }): number {
  if (/^(docker|br-|veth|virbr|vmnet|vboxnet|utun|tun|tap)/i.test(one.name)) return 3
  if (one.address.startsWith('192.168.')) return 0
  return one.address.startsWith('10.') ? 1 : 2
}

/** The secret travels in the fragment, which browsers never send to a server. */
export function hostUrls(input: {
  readonly port: number
  /** What the host listens on. */
  readonly host: string
  readonly secure: boolean
  readonly secret: string | null
  readonly addresses: readonly string[]
}): HostUrls {
  const scheme = input.secure ? 'https' : 'http'
  const fragment = input.secret === null ? '' : `#s=${input.secret}`
  const everywhere = ['0.0.0.0', '::', ''].includes(input.host)
  const local = everywhere || isLoopback(input.host) ? 'localhost' : urlHost(input.host)
  const at = (name: string, path: string): string =>
    `${scheme}://${name}:${input.port}${path}${fragment}`
  const lan = everywhere ? input.addresses : isLoopback(input.host) ? [] : [input.host]
  return {
    chat: at(local, '/'),
    join: at(local, '/join'),
    dashboard: at(local, '/dashboard'),
    api: `${scheme}://${local}:${input.port}/v1`,
    lanJoin: lan.map((address) => at(urlHost(address), '/join')),
    secure: input.secure,
  }
}

/** The dashboard with what proves the operator, in the fragment too. */
export function operatorUrl(
  { dashboard }: Pick<HostUrls, 'dashboard'>,
  adminToken: string,
): string {
  return `${dashboard}${dashboard.includes('#') ? '&' : '#'}a=${adminToken}`
}

function isLoopback(host: string): boolean {
  return host === 'localhost' || host === '::1' || host.startsWith('127.')
}

function urlHost(host: string): string {
  return host.includes(':') ? `[${host}]` : host
}
