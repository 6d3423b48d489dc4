import type { SessionId } from '../../sdk/core/ids.ts'
import { lengthOf } from '../../sdk/core/session/token-list.ts'
import type { RequestState } from '../../sdk/core/swarm/request-state.ts'
import { isRouted } from '../../sdk/core/swarm/views.ts'
import { canDoWithout } from '../support/can-do-without.ts'
import { watchBlame } from './blame.ts'
import { createLie, LIES, TOLD_BY, type LieKind } from './lies.ts'
import { pick, whole } from './randoms.ts'
import type { SimDevice } from './sim-device.ts'
import type { SimSwarm } from './sim-swarm.ts'

const BLOWS = [
  'kill',
  'vanish',
  'leave',
  'freeze',
  'sleep',
  'slow',
  'cut',
  'blip',
  'delay',
  'reload',
  'socket',
  'unheard',
  'device-lost',
] as const

type Blow = (typeof BLOWS)[number]

/** What can happen to a device that computes an answer, and how it can lie. */
export const DEVICE_DISTURBANCES = [...BLOWS, ...LIES] as const

export type DeviceDisturbance = (typeof DEVICE_DISTURBANCES)[number]

export type StruckDevice = {
  /** Whether the others could answer without the device at that moment. */
  readonly hasReplica: boolean
  /** What the kind promises besides, once everything is settled. */
  objections(): string[]
}

/** Strikes one stage of an answer that is being computed; null where its route is no more. */
export function disturbDevice(
  sim: SimSwarm,
  request: RequestState,
  kind: DeviceDisturbance,
  random: () => number,
): StruckDevice | null {
  const lie = lieOf(kind)
  const stage = stageFor(lie, request.stages.length, random)
  const own = deviceAt(sim, request, stage)
  const next = deviceAt(sim, request, (stage + 1) % request.stages.length)
  if (own === null || next === null || !own.isAlive) return null
  const scene = { sim, request, own, next, random }
  const hasReplica = canDoWithout(sim.host.state(), own.peer)
  if (lie !== null) return { hasReplica, objections: deceive(scene, lie) }
  // What is no lie is a blow.
  BLOW[kind as Blow](scene)
  return { hasReplica, objections: () => [] }
}

function lieOf(kind: DeviceDisturbance): LieKind | null {
  return LIES.find((lie) => lie === kind) ?? null
}

function stageFor(lie: LieKind | null, stages: number, random: () => number): number {
  const any = whole(random, 0, stages - 1)
  const teller = lie === null ? undefined : TOLD_BY[lie]
  if (teller === undefined) return any
  return teller === 'last' ? stages - 1 : any % Math.max(1, stages - 1)
}

type Scene = {
  readonly sim: SimSwarm
  readonly request: RequestState
  readonly own: SimDevice
  /** The stage that gets the frames of the victim. */
  readonly next: SimDevice
  readonly random: () => number
}

const BLOW: Readonly<Record<Blow, (scene: Scene) => void>> = {
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
  reload({ sim, own, random }) {
    own.kill()
    sim.plan(whole(random, 100, 3_000), own.reopen)
  },
  socket: ({ own }) => own.dropSocket(),
  unheard: ({ own }) => own.loseHost(),
  'device-lost': ({ own, random }) => own.life.runner.lose(random() < 0.5),
}

function freeze({ sim, own }: Scene, ms: number): void {
  own.freeze()
  sim.plan(ms, own.thaw)
}

/** What nobody can be caught at: it changes nothing that an answer is made of. */
const HARMLESS: ReadonlySet<LieKind> = new Set(['lie-numbers'])

/** From now on it lies; gives the objection that nobody minded. */
function deceive({ sim, request, own, next }: Scene, kind: LieKind): () => string[] {
  let told = 0
  const blame = watchBlame(sim, own.peer)
  const wronged: string[] = []
  sim.onEvent((event) => {
    if (event.kind === 'struck' && event.peer !== own.peer)
      wronged.push(`${own.peer} lied (${kind}) and ${event.peer} was struck: ${event.reason}`)
  })
  const lie = createLie(kind, () => void (told += 1))
  own.lie(lie)
  const { session, epoch } = request
  if (session === null) throw new Error(`${request.key} has no session`)
  if (kind === 'lie-rows') {
    // So that it is asked what it has of the session.
    const error = { code: 'too-many-requests', message: 'not now' } as const
    own.say({ kind: 'session-failed', session, epoch, error })
  }
  if (kind === 'lie-session') told = sayForeignTokens(sim, own)
  return () =>
    told === 0 || HARMLESS.has(kind) || blame.isHeld()
      ? wronged
      : [
          ...wronged,
          `${own.peer} lied ${told} times (${kind}, next to ${next.peer}) and nobody minded`,
        ]
}

/** Tokens for all sessions whose last stage is another device, and for one that there isn't; how many of those there are. */
function sayForeignTokens(sim: SimSwarm, own: SimDevice): number {
  const sampled = { token: 9, logprob: -1, top: [] }
  const foreign = [...sim.host.state().requests.values()].filter(
    (request) => isRouted(request) && request.stages.at(-1)?.peer !== own.peer,
  )
  for (const { session, epoch, promptLength, answer } of foreign) {
    const position = promptLength + lengthOf(answer)
    for (const named of session === null ? [] : [session, unknownSession(session)])
      own.say({ kind: 'session-token', session: named, epoch, position, sampled })
  }
  return foreign.length
}

function unknownSession(known: SessionId): SessionId {
  // Any number names a session here.
  return ((known ^ 0x4000_0000) >>> 0) as SessionId
}

function deviceAt(sim: SimSwarm, request: RequestState, stage: number): SimDevice | null {
  const peer = request.stages[stage]?.peer
  return sim.devices.find((device) => device.peer === peer) ?? null
}
