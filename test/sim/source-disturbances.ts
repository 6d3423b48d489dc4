import type { PairState } from '../../sdk/core/swarm/state.ts'
import { canDoWithout } from '../support/can-do-without.ts'
import { createLie } from './lies.ts'
import { whole } from './randoms.ts'
import type { SimDevice } from './sim-device.ts'
import type { SimSwarm } from './sim-swarm.ts'

/** What can happen to a device that gives pieces to another one. */
export const SOURCE_DISTURBANCES = ['source-kill', 'source-vanish', 'source-lie'] as const

export type SourceDisturbance = (typeof SOURCE_DISTURBANCES)[number]

export type StruckSource = { readonly hasReplica: boolean; objections(): string[] }

/** A link for pieces is there, or nobody would give any, ms. */
const LINKED_MS = 10_000
/** Whatever a source does, the pieces are there and loaded by then, ms. */
const LOADED_MS = 30_000

/** Somebody joins and fetches its pieces from the others; one of its sources is struck while it gives them. */
export async function disturbSource(
  sim: SimSwarm,
  kind: SourceDisturbance,
  random: () => number,
): Promise<StruckSource> {
  const newcomer = sim.join({ pledgeBytes: 1e9, stepMs: (rows) => 10 + rows })
  let wasReady = false
  sim.onEvent((event) => {
    if (event.kind === 'stage-reported' && event.peer === newcomer.peer)
      wasReady ||= event.state === 'ready'
  })
  const link = (): PairState | undefined => linkOf(sim, newcomer)
  if (!(await sim.pass(LINKED_MS, () => link() !== undefined)))
    throw new Error(`${newcomer.peer} was linked with nobody that has its pieces`)
  // Before the first piece, or between two.
  const least = whole(random, 0, 2)
  await sim.pass(LINKED_MS, () => newcomer.stored >= least || link() === undefined)
  const source = sim.devices.find(({ peer }) => peer === link()?.to)
  sim.plan(LOADED_MS, () => {
    if (!wasReady) sim.object(`${newcomer.peer} never got ready with a source that was struck`)
  })
  // All pieces came before it could be struck.
  if (source === undefined) return { hasReplica: true, objections: () => [] }
  const hasReplica = canDoWithout(sim.host.state(), source.peer)
  if (kind === 'source-kill') source.kill()
  if (kind === 'source-vanish') source.vanish()
  return { hasReplica, objections: kind === 'source-lie' ? spoil(sim, source) : () => [] }
}

function linkOf(sim: SimSwarm, fetcher: SimDevice): PairState | undefined {
  return [...sim.host.state().pairs.values()].find(
    ({ purpose, from, state }) => purpose === 'pieces' && from === fetcher.peer && state === 'open',
  )
}

function spoil(sim: SimSwarm, source: SimDevice): () => string[] {
  let told = 0
  source.lie(createLie('lie-pieces', () => void (told += 1)))
  let isAccused = false
  sim.onEvent((event, { pairs }) => {
    if (event.kind === 'link-reported' && event.error?.code === 'piece-corrupt')
      isAccused ||= pairs.get(event.pair)?.to === source.peer
  })
  return () =>
    told === 0 || isAccused ? [] : [`${source.peer} sent wrong pieces and was not accused`]
}
