import { performance } from 'node:perf_hooks'
import type { SessionId } from '../../../sdk/core/ids.ts'
import type { RequestPhase } from '../../../sdk/core/swarm/request-state.ts'
import { canDoWithout } from '../../support/can-do-without.ts'
import type { Asker } from '../../support/asker.ts'
import { eventually } from '../../support/eventually.ts'
import { createRandoms, pick, whole } from '../../sim/randoms.ts'
import type { ChaosResult } from '../summary.ts'
import { askRing, type RealAnswer } from './real-answer.ts'
import type { RealDevice } from './real-device.ts'
import {
  disturbDevice,
  REAL_DISTURBANCES,
  WAY_DISTURBANCES,
  type RealDisturbance,
  type Victim,
} from './real-disturbances.ts'
import { openReference, type Reference } from './real-question.ts'
import { openRealRing, type RealRing } from './real-ring.ts'

/** A disturbed answer of a real ring, and whom it hit when. */
export type RealRun = ChaosResult & {
  readonly victim: string
  readonly atToken: number
  readonly session: SessionId | null
}

/** Two stages, each held by two devices. */
const RING = { workers: 2, tabs: 2, stages: 2 } as const
/** On a busy machine. */
const WHOLE_MS = 60_000
const ANSWER_MS = 30_000
/** Caches of a device that lost its host are kept a minute (RE8), and told of with the next beat. */
const FREED_MS = 70_000
const ENDED: ReadonlySet<RequestPhase> = new Set(['done', 'failed', 'cancelled'])
/** So many tokens are left when an answer is disturbed. */
const REST = 80

export async function realChaos(
  options: { readonly runs: number; readonly seed: number; readonly isLan: boolean },
  say: (run: RealRun) => void,
): Promise<RealRun[]> {
  const checked: RealRun[] = []
  let runs: RealRun[] = []
  let stage = await openStage(options.isLan)
  const check = async (): Promise<void> => {
    checked.push(...(await withLeaks(stage.ring, runs)))
    runs = []
  }
  try {
    for (let index = 0; index < options.runs; index += 1) {
      const run = await oneRun(stage, options.seed + index)
      runs.push(run)
      say(run)
      if (run.objections.length === 0) continue
      // A ring that did not come back is no ground for the next run.
      await check()
      await stage.close()
      stage = await openStage(options.isLan)
    }
    await check()
    return checked
  } finally {
    await stage.close()
  }
}

type Stage = {
  readonly ring: RealRing
  readonly asker: Asker
  readonly reference: Reference
  close(): Promise<void>
}

async function openStage(isLan: boolean): Promise<Stage> {
  const ring = await openRealRing({ ...RING, isLan })
  try {
    const reference = await openReference(ring.model)
    await ring.untilWhole(WHOLE_MS)
    const asker = await ring.openAsker()
    return {
      ring,
      asker,
      reference,
      async close() {
        asker.close()
        await reference.close()
        await ring.close()
      },
    }
  } catch (error) {
    await ring.close()
    throw error
  }
}

async function oneRun({ ring, asker, reference }: Stage, seed: number): Promise<RealRun> {
  const random = createRandoms(seed).stream('real')
  const kinds = ring.lan === null ? REAL_DISTURBANCES : [...REAL_DISTURBANCES, ...WAY_DISTURBANCES]
  const kind = pick(random, kinds)
  const wanted = await reference.someCase(random)
  const atToken = whole(random, 0, wanted.expected.length - REST)
  const answer = askRing(ring, asker, wanted)
  const scene = { kind, atToken, seed }
  try {
    const victim = await untilToken(ring, answer, { atToken, random })
    return { ...scene, ...(await strike(ring, answer, { victim, kind, random })) }
  } catch (error) {
    const { outcome, ending } = await answer.ended
    const objections = [`not disturbed: ${messageOf(error)}`]
    const nothing = { victim: '', stages: 0, hasReplica: true, noticedMs: null, nextTokenMs: null }
    const session = answer.request()?.session ?? null
    return { ...scene, ...nothing, outcome, ending, leaks: [], session, objections }
  }
}

async function strike(
  ring: RealRing,
  answer: RealAnswer,
  { victim, kind, random }: { victim: Victim; kind: RealDisturbance; random: () => number },
): Promise<Omit<RealRun, 'seed' | 'kind' | 'atToken'>> {
  const { device } = victim
  const peer = ring.peerOf(device)
  const hasReplica = peer !== null && canDoWithout(ring.state(), peer)
  const { stages, session } = answer.request() ?? { stages: [], session: null }
  answer.arm()
  const struckAt = performance.now()
  const forget = await disturbDevice(victim, kind, random)
  const end = await answer.ended
  forget()
  const objections = await recover(ring, victim)
  const reaction = answer.reaction()
  const nextAt = reaction === null ? undefined : answer.tokenAt[reaction.tokens]
  return {
    victim: device.name,
    stages: stages.length,
    hasReplica,
    ...end,
    noticedMs: reaction === null ? null : reaction.at - struckAt,
    nextTokenMs: nextAt === undefined ? null : nextAt - struckAt,
    leaks: [],
    session,
    objections,
  }
}

/** Waits until so many tokens have come; gives a device of the route, and the one behind it. */
async function untilToken(
  ring: RealRing,
  answer: RealAnswer,
  { atToken, random }: { atToken: number; random: () => number },
): Promise<Victim> {
  const share = random()
  return await new Promise((resolve, reject) => {
    const look = (): void => {
      const request = answer.request()
      if (request?.phase !== 'running' || answer.tokenAt.length < atToken) return
      const { stages } = request
      const at = Math.floor(share * stages.length)
      const [device, next] = [at, (at + 1) % stages.length].map((index) =>
        ring.devices.find((each) => ring.peerOf(each) === stages[index]?.peer),
      )
      if (device && next) {
        const isDirect = ring.areDirect(device, next)
        finish(() => resolve({ device, next, isDirect, lan: ring.lan }))
      }
    }
    const unhear = ring.onEvent(look)
    const finish = (then: () => void): void => {
      unhear()
      clearTimeout(timer)
      then()
    }
    const timer = setTimeout(
      () =>
        finish(() => {
          const { phase = 'unasked' } = answer.request() ?? {}
          const tokens = answer.tokenAt.length
          reject(new Error(`the answer is ${phase} after ${tokens} tokens, before its disturbance`))
        }),
      ANSWER_MS,
    )
  })
}

/** Undoes the disturbance; what is wrong with the ring afterwards. */
async function recover(ring: RealRing, { device, next, lan }: Victim): Promise<string[]> {
  try {
    if (lan !== null && device.place !== null && next.place !== null)
      lan.heal(device.place, next.place)
    await device.restore()
    await ring.untilWhole(WHOLE_MS)
    return []
  } catch (error) {
    const story = await device.story().catch(() => 'it does not answer')
    return [messageOf(error), `${device.name}: ${story}`]
  }
}

/** Runs with what is left of their sessions, once the time to free them is over. */
async function withLeaks(ring: RealRing, runs: readonly RealRun[]): Promise<RealRun[]> {
  const leaksOf = ({ session }: RealRun): string[] => [
    ...[...ring.state().requests.values()]
      .filter((request) => request.session === session && !ENDED.has(request.phase))
      .map(({ phase }) => `the host still has session ${session}, ${phase}`),
    ...ring.devices
      .filter((device) => ring.sessionsOf(device).some((each) => each === session))
      .filter((device) => !isRetained(ring, device, session))
      .map((device) => `${device.name} still has session ${session}`),
  ]
  const areFreed = (): boolean | null =>
    runs.every((run) => leaksOf(run).length === 0) ? true : null
  await eventually('', FREED_MS, areFreed).catch(() => undefined)
  return runs.map((run) => ({ ...run, leaks: leaksOf(run) }))
}

/** Caches that the host wants kept for the next question are no leak. */
function isRetained(ring: RealRing, device: RealDevice, session: SessionId | null): boolean {
  const stages = ring.state().retained.get(session ?? (0 as SessionId))?.stages ?? []
  return stages.some(({ peer }) => peer === ring.peerOf(device))
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}
