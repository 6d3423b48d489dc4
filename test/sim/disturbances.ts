import { SESSION_STALL_MS } from '../../sdk/core/limits.ts'
import type { RequestState } from '../../sdk/core/swarm/request-state.ts'
import { isComplete, isOver } from '../../sdk/core/swarm/views.ts'
import { DEVICE_DISTURBANCES, disturbDevice } from './device-disturbances.ts'
import type { SimSwarm } from './sim-swarm.ts'
import {
  disturbSource,
  SOURCE_DISTURBANCES,
  type SourceDisturbance,
} from './source-disturbances.ts'

const ASKER_DISTURBANCES = ['asker-break', 'asker-vanish', 'asker-leave'] as const
type AskerDisturbance = (typeof ASKER_DISTURBANCES)[number]

/** What can happen while an answer is computed: to a device of its ring, to one that gives pieces, to whoever asked, to the host. */
export const DISTURBANCES = [
  ...DEVICE_DISTURBANCES,
  ...SOURCE_DISTURBANCES,
  ...ASKER_DISTURBANCES,
  'host-restart',
] as const

export type Disturbance = (typeof DISTURBANCES)[number]

/** What happens in silence is noticed by it: 3 s after the last message that came, ways not counted. */
const SILENT: ReadonlySet<Disturbance> = new Set([
  'vanish',
  'freeze',
  'sleep',
  'cut',
  'blip',
  'unheard',
  'source-vanish',
])
/** A socket whose other end is gone is given up by its ping. */
const SOCKET_DEAD_MS = { least: 3_000, most: 5_000 } as const
const NOTICED_MS = {
  silent: 3_300,
  told: 750,
  asker: SOCKET_DEAD_MS.most + 750,
  /** Everybody is there and says so; the beat before counts as progress. */
  stalled: SESSION_STALL_MS + 1_500,
} as const

/** By when a loss of that kind must be noticed, ms; the ways of the slowest weather included. */
export function noticeLimitMs(kind: Disturbance): number {
  if (kind === 'asker-vanish' || kind === 'asker-break') return NOTICED_MS.asker
  if (kind === 'lie-mute') return NOTICED_MS.stalled
  return SILENT.has(kind) ? NOTICED_MS.silent : NOTICED_MS.told
}

export type Struck = {
  readonly kind: Disturbance
  readonly at: number
  /** Whether the others could answer without the device that was struck; no where it was no device. */
  readonly hasReplica: boolean
  /** Whose answers must be the unsplit model's although no device was struck that could be replaced. */
  readonly unharmed: 'everybody' | 'the others' | 'nobody'
  /** The ring can be whole without whatever was struck. */
  readonly mustRecover: boolean
  /** What the kind promises besides, once everything is settled. */
  objections(): string[]
}

/** Strikes an answer that is being computed; null where its route is no more. */
export async function disturb(
  sim: SimSwarm,
  request: RequestState,
  kind: Disturbance,
  random: () => number,
): Promise<Struck | null> {
  if (isOfSource(kind)) {
    const blow = await disturbSource(sim, kind, random)
    return { kind, at: sim.clock.now(), ...blow, unharmed: 'nobody', mustRecover: blow.hasReplica }
  }
  const struck = { kind, at: sim.clock.now(), objections: () => [] }
  if (kind === 'host-restart') {
    restartHost(sim)
    return { ...struck, hasReplica: false, unharmed: 'everybody', mustRecover: true }
  }
  if (isOfAsker(kind)) {
    disturbAsker(sim, request, kind, random)
    const unharmed = kind === 'asker-break' ? 'everybody' : 'the others'
    return { ...struck, hasReplica: false, unharmed, mustRecover: true }
  }
  const blow = disturbDevice(sim, request, kind, random)
  // The page lives on, and starts anew what it lost.
  const mustRecover = blow?.hasReplica === true || kind === 'device-lost'
  return blow && { ...struck, ...blow, unharmed: 'nobody', mustRecover }
}

function isOfAsker(kind: Disturbance): kind is AskerDisturbance {
  return ASKER_DISTURBANCES.some((one) => one === kind)
}

function isOfSource(kind: Disturbance): kind is SourceDisturbance {
  return SOURCE_DISTURBANCES.some((one) => one === kind)
}

/** The request of whoever is gone must end soon, so that its caches are freed; who comes back asks for the rest anew. */
function disturbAsker(
  sim: SimSwarm,
  { asker: peer, key }: RequestState,
  kind: AskerDisturbance,
  random: () => number,
): void {
  const asker = sim.askers.find((one) => one.peer === peer)
  if (asker === undefined) throw new Error(`nobody asked ${key}`)
  const { least, most } = SOCKET_DEAD_MS
  const silenceMs = least + random() * (most - least)
  // It may be back before the host has noticed.
  if (kind === 'asker-break') asker.breakOff(random() < 0.5 ? 0 : silenceMs)
  if (kind === 'asker-vanish') asker.vanish(silenceMs)
  if (kind === 'asker-leave') asker.close()
  sim.plan(NOTICED_MS.asker, () => {
    const left = sim.host.state().requests.get(key)
    if (left !== undefined && !isOver(left)) sim.object(`${key} is ${left.phase} for nobody`)
  })
}

/** The process is killed and started again: every device comes back by itself, with what it holds. */
const WHOLE_MS = 10_000

function restartHost(sim: SimSwarm): void {
  sim.host.restart()
  sim.plan(WHOLE_MS, () => {
    if (!isComplete(sim.host.state())) sim.object(`not whole ${WHOLE_MS} ms after a restart`)
  })
}
