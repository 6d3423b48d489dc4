import type { Disturbance } from '../../sim/disturbances.ts'
import { whole } from '../../sim/randoms.ts'
import type { Lan } from './lan.ts'
import type { RealDevice } from './real-device.ts'

/** What can be done to a process or a tab; the names are the simulator's. */
export const REAL_DISTURBANCES = [
  'kill',
  'vanish',
  'leave',
  'freeze',
  'sleep',
  'slow',
  'unheard',
  'reload',
  'socket',
] as const satisfies readonly Disturbance[]

/** What can be done to the way between two devices, where each has a network of its own. */
export const WAY_DISTURBANCES = ['cut', 'blip'] as const satisfies readonly Disturbance[]

type DeviceDisturbance = (typeof REAL_DISTURBANCES)[number]
type WayDisturbance = (typeof WAY_DISTURBANCES)[number]
export type RealDisturbance = DeviceDisturbance | WayDisturbance

export type Victim = {
  readonly device: RealDevice
  /** The stage that gets its frames. */
  readonly next: RealDevice
  /** Nothing goes through the host between the two. */
  readonly isDirect: boolean
  readonly lan: Lan | null
}

/** Disturbs a device; what is to end by itself does so later, unless the returned function is called. */
export async function disturbDevice(
  victim: Victim,
  kind: RealDisturbance,
  random: () => number,
): Promise<() => void> {
  const timers: NodeJS.Timeout[] = []
  const later: Later = (ms, task) => void timers.push(setTimeout(task, ms))
  if (isOfWay(kind)) disturbWay(victim, kind, random, later)
  else await ACTIONS[kind](victim.device, random, later)
  return () => {
    for (const timer of timers) clearTimeout(timer)
  }
}

function isOfWay(kind: RealDisturbance): kind is WayDisturbance {
  return WAY_DISTURBANCES.some((way) => way === kind)
}

function disturbWay(
  { device, next, isDirect, lan }: Victim,
  kind: WayDisturbance,
  random: () => number,
  later: Later,
): void {
  const [from, to] = [device.place, next.place]
  if (lan === null || from === null || to === null) throw new Error(`${kind} needs a network`)
  if (!isDirect) throw new Error(`${device.name} and ${next.name} are relayed`)
  lan.cut(from, to)
  if (kind === 'blip') later(whole(random, 100, 3_000), () => lan.heal(from, to))
}

type Later = (ms: number, task: () => void) => void
type Action = (device: RealDevice, random: () => number, later: Later) => Promise<void>

const ACTIONS: Readonly<Record<DeviceDisturbance, Action>> = {
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
  unheard(device, random, later) {
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
