import * as v from 'valibot'
import { CrowdError, toCrowdError } from '../sdk/core/errors.ts'
import { planSwarm } from '../sdk/core/plan/assign.ts'
import { reviewPlan } from '../sdk/core/plan/review.ts'
import { swarmSnapshot, type SwarmSnapshot } from '../sdk/protocol/swarm-snapshot.ts'
import { parsePlanDevices } from './plan-devices.ts'
import { readPlanModel, type NamedModel } from './plan-model.ts'
import type { ShownPlan } from './plan-lines.ts'

const ANSWER_MS = 10_000

/** What the planner would do with devices that are not there. @throws CrowdError bad-option, and those of `readPlanModel` */
export async function planHypothetical(
  request: Parameters<typeof readPlanModel>[0] & {
    readonly devices: string
    readonly stages: number | 'auto'
  },
): Promise<ShownPlan> {
  const devices = parsePlanDevices(request.devices)
  const named = await readPlanModel(request)
  const input = { model: named.model, devices, minStages: stagesOf(request.stages, named) }
  const review = reviewPlan(input, planSwarm(input))
  return {
    ...review,
    model: named.name,
    layerCount: named.model.layerCount,
    devices: review.devices.map((planned, index) => ({
      ...planned,
      name: String(index + 1),
      provider: devices[index]?.provider ?? '',
      pledgeBytes: devices[index]?.pledgeBytes ?? 0,
      now: null,
    })),
  }
}

/** As the host does. */
function stagesOf(stages: number | 'auto', { isBuiltin }: NamedModel): number {
  if (stages !== 'auto') return stages
  return isBuiltin ? 2 : 1
}

/**
 * The present plan of a running host. Without the secret of a join link, devices have numbers for names.
 * @throws CrowdError host-unreachable, bad-option
 */
export async function planOfHost(host: string, get: typeof fetch): Promise<ShownPlan> {
  if (!URL.canParse(host)) throw new CrowdError('bad-option', `--host: "${host}" is no address`)
  const link = new URL(host)
  const secret = new URLSearchParams(link.hash.slice(1)).get('s')
  const address = new URL('/api/swarm', link)
  const headers = secret === null ? {} : { Authorization: `Bearer ${secret}` }
  try {
    const response = await get(address, { headers, signal: AbortSignal.timeout(ANSWER_MS) })
    return shownPlan(v.parse(swarmSnapshot, await response.json()))
  } catch (cause) {
    const message = `${address.href} does not tell of a swarm: ${toCrowdError(cause).message}`
    throw new CrowdError('host-unreachable', message, { cause })
  }
}

function shownPlan({ model, plan, peers }: SwarmSnapshot): ShownPlan {
  const devices = plan.devices.flatMap((planned) => {
    const peer = peers.find((one) => one.peer === planned.peer)
    if (peer === undefined) return []
    const { name, provider, pledgeBytes, range: now } = peer
    return [{ ...planned, name, provider: provider ?? '–', pledgeBytes, now }]
  })
  return { ...plan, model: model.id, layerCount: model.layerCount, devices }
}
