import { CrowdError } from '../sdk/core/errors.ts'
import type { Provider } from '../sdk/core/model/provider.ts'
import { imaginedDevice, type PlanDevice } from '../sdk/core/plan/device.ts'

const UNITS: Readonly<Record<string, number>> = { mb: 1e6, gb: 1e9, tb: 1e12 }
const PROVIDERS: readonly Provider[] = ['webgpu', 'wasm', 'cpu', 'cuda']
const DEVICES_MAX = 256
const DEVICE =
  /^\s*(\d+(?:\.\d+)?)\s*([mgt]b)(?:[@:](webgpu|wasm|cpu|cuda))?(?:[@:](\d+(?:\.\d+)?)\s*ms)?\s*$/i

/**
 * Devices that are not there: `4GB,8GB@webgpu:12ms` is what each lends, what it computes on (default WebGPU), and its
 * ms for a layer (default: guessed).
 * @throws CrowdError bad-option
 */
export function parsePlanDevices(text: string): PlanDevice[] {
  const parts = text.split(',')
  if (parts.length > DEVICES_MAX)
    throw new CrowdError('bad-option', `--devices: at most ${DEVICES_MAX}`)
  return parts.map(parseDevice)
}

function parseDevice(text: string, index: number): PlanDevice {
  const [, number = '', unit = '', named = 'webgpu', ms] = DEVICE.exec(text) ?? []
  const pledgeBytes = Math.floor(Number(number) * (UNITS[unit.toLowerCase()] ?? 0))
  const provider = PROVIDERS.find((one) => one === named.toLowerCase())
  if (pledgeBytes <= 0 || provider === undefined || Number(ms ?? 1) <= 0) {
    const example = `say e.g. 4GB, 2GB@wasm or 8GB@webgpu:12ms (${PROVIDERS.join(', ')}; ms for a layer)`
    throw new CrowdError('bad-option', `--devices: "${text.slice(0, 40)}" is no device; ${example}`)
  }
  return imaginedDevice(`device-${index + 1}`, {
    pledgeBytes,
    provider,
    msPerLayer: ms === undefined ? null : Number(ms),
  })
}
