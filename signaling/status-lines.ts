import { describeRange } from '../sdk/core/model/block-range.ts'
import type { SwarmSnapshot } from '../sdk/protocol/swarm-snapshot.ts'
import { formatBytes } from '../sdk/terminal/format.ts'
import type { StartedHost } from './server.ts'
import { operatorUrl } from './urls.ts'

/** Texts for the terminal. Pure: printing is the command's. */

type BannerInput = {
  readonly started: Pick<StartedHost, 'urls' | 'secret' | 'adminToken'>
  readonly modelId: string
  /** Whether the API has keys of its own, so that the pool's secret opens it no more. */
  readonly hasKeys: boolean
  /** QR code of the first LAN join URL, or '' without one. */
  readonly qrCode: string
}

/** What is printed once, when the host is ready. */
export function bannerLines(input: BannerInput): string[] {
  const { urls, secret, adminToken } = input.started
  const [firstLan, ...otherLan] = urls.lanJoin
  return [
    '',
    `  CrowdInfer hosts ${input.modelId}`,
    '',
    `  Chat                ${urls.chat}`,
    `  Lend this machine   ${urls.join}`,
    ...(firstLan === undefined
      ? ['  Other devices       none can reach this host: it listens on this machine only']
      : [`  Lend other devices  ${firstLan}`]),
    ...otherLan.map((url) => `                      ${url}`),
    `  Dashboard           ${urls.dashboard}`,
    `  Choose the model    ${operatorUrl(urls, adminToken)}  (yours alone)`,
    `  OpenAI clients      ${urls.api}${apiKeyHint(secret, input.hasKeys)}`,
    '',
    secret === null
      ? '  This pool is open: whoever reaches this host may join and ask.'
      : '  This pool is private: only who has these links may join. The links stay valid after a restart.',
    ...(firstLan === undefined || urls.secure ? [] : INSECURE),
    ...(urls.secure ? SELF_SIGNED : []),
    ...(input.qrCode === '' ? [] : ['', ...input.qrCode.trimEnd().split('\n')]),
    '',
  ]
}

/** What the API takes as its key. */
function apiKeyHint(secret: string | null, hasKeys: boolean): string {
  if (hasKeys) return ', key: one of yours (crowdinfer key list)'
  return secret === null ? '' : `, key ${secret}`
}

const INSECURE: readonly string[] = [
  '  Phones and other machines have no GPU, threads or fast hashing on plain http: browsers want https for',
  '  that. They still help, slowly. To give them everything: start with --https, or put a tunnel in front.',
]

const SELF_SIGNED: readonly string[] = [
  '  Each device asks once whether to trust this host’s certificate.',
]

/** One line of state; the same text means that nothing worth telling changed. */
export function statusLine(swarm: SwarmSnapshot): string {
  const workers = swarm.peers.filter((peer) => peer.role === 'worker')
  const ready = workers.filter((peer) => peer.state === 'ready')
  const active = swarm.requests.filter((one) => one.state === 'running' || one.state === 'opening')
  const parts = [
    ...(swarm.change === null ? [] : [changeText(swarm.change)]),
    `${count(workers.length, 'device')} (${ready.length} ready)`,
    coverage(swarm),
    `${swarm.laps} laps`,
    ...(active.length > 0 ? [count(active.length, 'answer')] : []),
    ...(swarm.relayedBytes > 0 ? [`${formatBytes(swarm.relayedBytes)} relayed`] : []),
  ]
  return parts.join(' · ')
}

function changeText({ name, phase, step }: NonNullable<SwarmSnapshot['change']>): string {
  if (phase === 'preparing') return `changing to ${name}: ${step}`
  return phase === 'draining'
    ? `changing to ${name} when the answers have ended`
    : `changing to ${name}: the devices load it`
}

function coverage(swarm: SwarmSnapshot): string {
  if (swarm.complete) return 'every layer held: ask away'
  if (swarm.missing.length === 0) return 'every layer held, linking the devices'
  const ranges = swarm.missing.map((range) => describeRange(range, swarm.model.layerCount))
  const all = swarm.missing.some(
    (range) => range.start === 0 && range.end === swarm.model.blockCount,
  )
  return all ? swarm.advice : `${swarm.advice} (${ranges.join('; ')})`
}

function count(number: number, word: string): string {
  return `${number} ${word}${number === 1 ? '' : 's'}`
}
