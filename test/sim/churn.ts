import { pick, whole } from './randoms.ts'
import { createLie, LIES } from './lies.ts'
import type { SimDevice } from './sim-device.ts'
import type { SimSwarm } from './sim-swarm.ts'

/** Something that happens in a swarm that lives for a while. */
type Churn = {
  readonly weight: number
  happen(sim: SimSwarm, random: () => number, join: () => void): void
}

/** Above this nobody new comes, and below nobody goes for good. */
const DEVICES = { least: 7, most: 14 }

/** Everything here ends by itself after a while, or somebody comes back: the swarm as a whole lives on. */
export const CHURN: readonly Churn[] = [
  {
    weight: 3,
    happen(sim, _random, join) {
      if (countAlive(sim) < DEVICES.most) join()
    },
  },
  { weight: 2, happen: (sim, random) => whoGoes(sim, random)?.leave() },
  { weight: 2, happen: (sim, random) => whoGoes(sim, random)?.kill() },
  { weight: 1, happen: (sim, random) => whoGoes(sim, random)?.vanish() },
  {
    weight: 3,
    happen(sim, random) {
      const gone = sim.devices.filter(({ isAlive }) => !isAlive)
      if (gone.length > 0) pick(random, gone).reopen()
    },
  },
  {
    weight: 2,
    happen(sim, random) {
      const device = one(sim, random)
      device?.kill()
      sim.plan(whole(random, 50, 3_000), () => device?.reopen())
    },
  },
  { weight: 2, happen: (sim, random) => freeze(sim, random, 6_000) },
  { weight: 1, happen: (sim, random) => freeze(sim, random, 120_000) },
  {
    weight: 1,
    happen(sim, random) {
      const device = one(sim, random)
      device?.slow(20)
      sim.plan(30_000, () => device?.slow(1))
    },
  },
  {
    weight: 2,
    happen(sim, random) {
      const [a, b] = [one(sim, random), one(sim, random)]
      if (a === undefined || b === undefined || a === b) return
      sim.links.cut(a.peer, b.peer)
      sim.plan(whole(random, 100, 40_000), () => sim.links.heal(a.peer, b.peer))
    },
  },
  {
    weight: 1,
    happen(sim, random) {
      const device = one(sim, random)
      device?.lie(createLie(pick(random, LIES), () => undefined))
      sim.plan(whole(random, 100, 5_000), () => device?.lie(null))
    },
  },
  { weight: 1, happen: (sim, random) => pick(random, sim.askers).breakOff() },
  { weight: 2, happen: (sim, random) => one(sim, random)?.dropSocket() },
  {
    weight: 1,
    happen(sim, random) {
      const worker = one(sim, random)?.life.worker
      void worker?.pause()
      sim.plan(whole(random, 1_000, 20_000), () => void worker?.resume())
    },
  },
  {
    weight: 1,
    happen(sim, random) {
      const worker = one(sim, random)?.life.worker
      worker?.setHidden(true)
      sim.plan(whole(random, 1_000, 20_000), () => worker?.setHidden(false))
    },
  },
  {
    weight: 1,
    happen: (sim, random) =>
      one(sim, random)?.life.worker.setPledge(pick(random, [10_000, 35_000, 60_000, 1e9])),
  },
  { weight: 0.3, happen: (sim) => sim.host.restart() },
]

function countAlive(sim: SimSwarm): number {
  return sim.devices.filter(({ isAlive }) => isAlive).length
}

function whoGoes(sim: SimSwarm, random: () => number): SimDevice | undefined {
  return countAlive(sim) > DEVICES.least ? one(sim, random) : undefined
}

/** Somebody who is here. */
function one(sim: SimSwarm, random: () => number): SimDevice | undefined {
  const here = sim.devices.filter(({ isAlive, life }) => isAlive && !life.gate.isFrozen)
  return here.length === 0 ? undefined : pick(random, here)
}

function freeze(sim: SimSwarm, random: () => number, mostMs: number): void {
  const device = one(sim, random)
  const gate = device?.life.gate
  device?.freeze()
  sim.plan(whole(random, 200, mostMs), () => gate?.thaw())
}
