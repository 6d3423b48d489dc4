import { CrowdError, toCrowdError } from '../sdk/core/errors.ts'
import type { Provider } from '../sdk/core/model/provider.ts'
import * as v from 'valibot'
import type { RecommendFlags } from './model-flags.ts'
import type { LentDevice } from './recommend.ts'

const PROVIDERS: readonly Provider[] = ['webgpu', 'wasm', 'cpu', 'cuda']
const UNITS: Readonly<Record<string, number>> = { mb: 1e6, gb: 1e9, tb: 1e12 }
const ANSWER_MS = 10_000
const DEVICES_MAX = 64

/** The part of a host's `/api/swarm` that matters here. */
const swarm = v.object({
  peers: v.array(
    v.object({
      role: v.string(),
      provider: v.nullable(v.picklist(PROVIDERS)),
      pledgeBytes: v.number(),
    }),
  ),
})

/**
 * The devices to plan for: `--devices 2GB,4GB:wasm`, or those of a running host.
 * @throws CrowdError bad-option, host-unreachable
 */
export async function lentDevices({ devices, swarm }: RecommendFlags): Promise<LentDevice[]> {
  if (swarm !== undefined) return devicesOf(swarm)
  if (devices === undefined) {
    const example = '--devices 2GB,4GB, or --swarm http://localhost:7080 of a running host'
    throw new CrowdError('bad-option', `recommend: say what there is: ${example}`)
  }
  const list = devices.split(',').map(parseDevice)
  if (list.length <= DEVICES_MAX) return list
  throw new CrowdError('bad-option', `--devices: at most ${DEVICES_MAX}`)
}

function parseDevice(text: string): LentDevice {
  const [, number = '', unit = '', provider = 'webgpu'] =
    /^\s*(\d+(?:\.\d+)?)\s*([mgt]b)(?::(\w+))?\s*$/i.exec(text) ?? []
  const bytes = Number(number) * (UNITS[unit.toLowerCase()] ?? 0)
  const known = PROVIDERS.find((one) => one === provider)
  if (bytes > 0 && known !== undefined) return { bytes, provider: known }
  const example = `say e.g. 2GB or 2GB:wasm (${PROVIDERS.join(', ')})`
  throw new CrowdError('bad-option', `--devices: "${text.slice(0, 40)}" is no device; ${example}`)
}

async function devicesOf(url: string): Promise<LentDevice[]> {
  if (!URL.canParse(url)) throw new CrowdError('bad-option', `--swarm: "${url}" is no address`)
  // The secret of a join link is not needed: sizes are no names.
  const address = new URL('/api/swarm', url)
  try {
    const response = await fetch(address, { signal: AbortSignal.timeout(ANSWER_MS) })
    const { peers } = v.parse(swarm, await response.json())
    const workers = peers.flatMap(({ role, provider, pledgeBytes }) =>
      role === 'worker' && provider !== null && pledgeBytes > 0
        ? [{ bytes: pledgeBytes, provider }]
        : [],
    )
    if (workers.length > 0) return workers
  } catch (cause) {
    const message = `${address.href} does not tell of a swarm: ${toCrowdError(cause).message}`
    throw new CrowdError('host-unreachable', message, { cause })
  }
  throw new CrowdError('bad-option', `--swarm: no device is lent to ${address.origin} yet`)
}
