import type { Disturbance } from '../../sim/disturbances.ts'
import { whole } from '../../sim/randoms.ts'
import type { RealDevice } from './real-device.ts'

/** What can be done to a process or a tab; the names are the simulator's. */
export const REAL_DISTURBANCES = [
  'kill',
  'vanish',
  'leave',
  'freeze',
  'sleep',
  'slow',
  'cut',
  'reload',
  'socket',
] as const satisfies readonly Disturbance[]

export type RealDisturbance = (typeof REAL_DISTURBANCES)[number]

/** Disturbs a device; what is to end by itself does so later, unless the returned function is called. */
export async function disturbDevice(
  device: RealDevice,
  kind: RealDisturbance,
  random: () => number,
): Promise<() => void> {
  const timers: NodeJS.Timeout[] = []
  const later: Later = (ms, task) => void timers.push(setTimeout(task, ms))
  await ACTIONS[kind](device, random, later)
  return () => {
    for (const timer of timers) clearTimeout(timer)
  }
}

type Later = (ms: number, task: () => void) => void
type Action = (device: RealDevice, random: () => number, later: Later) => Promise<void>

const ACTIONS: Readonly<Record<RealDisturbance, Action>> = {
  kill: (device) => device.kill(),
  // Its connection stays open on the host's side, as when a laptop loses its power.
  async vanish(device) {
    device.door.block()
    await device.kill()
  },
  leave: (device) => device.leave(),
  freeze: (device, random, later) => freeze(device, whole(random, 200, 8_000), later),
  sleep: (device, random, later) => freeze(device, whole(random, 12_000, 25_000), later),
  slow: (device) => device.setSlow(true),
  // The other devices still reach it.
  cut(device, random, later) {
    device.door.block()
    later(whole(random, 200, 12_000), () => device.door.unblock())
    return Promise.resolve()
  },
  reload: (device) => device.reload(),
  socket(device) {
    device.door.drop()
    return Promise.resolve()
  },
}

async function freeze(device: RealDevice, ms: number, later: Later): Promise<void> {
  await device.setFrozen(true)
  // A tab that crashed meanwhile needs no thawing.
  later(ms, () => void device.setFrozen(false).catch(() => undefined))
}
