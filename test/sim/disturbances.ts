import type { RequestState } from '../../sdk/core/swarm/state.ts'
import { canDoWithout } from '../support/can-do-without.ts'
import { pick, whole } from './randoms.ts'
import type { SimDevice } from './sim-device.ts'
import type { SimSwarm } from './sim-swarm.ts'

/** What can happen to a device that computes an answer. */
export const DISTURBANCES = [
  'kill',
  'vanish',
  'leave',
  'freeze',
  'sleep',
  'slow',
  'cut',
  'blip',
  'delay',
  'lie',
  'reload',
  'socket',
] as const

export type Disturbance = (typeof DISTURBANCES)[number]

/** What happens in silence is noticed by it: 3 s after the last message that came, ways not counted. */
const SILENT: ReadonlySet<Disturbance> = new Set(['vanish', 'freeze', 'sleep', 'cut', 'blip'])
const NOTICED_MS = { silent: 3_300, told: 750 } as const

/** By when a loss of that kind must be noticed, ms; the ways of the slowest weather included. */
export function noticeLimitMs(kind: Disturbance): number {
  return SILENT.has(kind) ? NOTICED_MS.silent : NOTICED_MS.told
}

export type Struck = {
  readonly kind: Disturbance
  readonly victim: SimDevice
  /** Whether the others could answer without the victim at that moment. */
  readonly hasReplica: boolean
  readonly at: number
}

/** Strikes one stage of an answer that is being computed; null where its route is no more. */
export function disturb(
  sim: SimSwarm,
  request: RequestState,
  kind: Disturbance,
  random: () => number,
): Struck | null {
  const stage = whole(random, 0, request.stages.length - 1)
  const own = deviceAt(sim, request, stage)
  const next = deviceAt(sim, request, (stage + 1) % request.stages.length)
  if (own === null || next === null || !own.isAlive) return null
  const struck = {
    kind,
    victim: own,
    hasReplica: canDoWithout(sim.host.state(), own.peer),
    at: sim.clock.now(),
  }
  ACTIONS[kind]({ sim, own, next, random })
  return struck
}

type Scene = {
  readonly sim: SimSwarm
  readonly own: SimDevice
  /** The stage that gets the frames of the victim. */
  readonly next: SimDevice
  readonly random: () => number
}

const ACTIONS: Readonly<Record<Disturbance, (scene: Scene) => void>> = {
  kill: ({ own }) => own.kill(),
  vanish: ({ own }) => own.vanish(),
  leave: ({ own }) => own.leave(),
  freeze: (scene) => freeze(scene, whole(scene.random, 200, 8_000)),
  sleep: (scene) => freeze(scene, whole(scene.random, 20_000, 100_000)),
  slow: ({ own }) => own.slow(20),
  cut: ({ sim, own, next }) => sim.links.cut(own.peer, next.peer),
  blip({ sim, own, next, random }) {
    sim.links.cut(own.peer, next.peer)
    sim.plan(whole(random, 100, 3_000), () => sim.links.heal(own.peer, next.peer))
  },
  delay: ({ sim, own, next, random }) =>
    sim.links.delay(own.peer, next.peer, pick(random, [100, 400, 1_200])),
  lie: ({ own }) => own.lie(true),
  reload({ sim, own, random }) {
    own.kill()
    sim.plan(whole(random, 100, 3_000), own.reopen)
  },
  socket: ({ own }) => own.dropSocket(),
}

function freeze({ sim, own }: Scene, ms: number): void {
  own.freeze()
  sim.plan(ms, own.thaw)
}

function deviceAt(sim: SimSwarm, request: RequestState, stage: number): SimDevice | null {
  const peer = request.stages[stage]?.peer
  return sim.devices.find((device) => device.peer === peer) ?? null
}
