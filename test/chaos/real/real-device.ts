import type { Door } from '../../support/door.ts'
import type { LanPlace } from './lan.ts'

/** A device of a real ring: a Node process or a Chromium tab, with its own storage and its own way to the host. */
export type RealDevice = {
  readonly kind: 'worker' | 'tab'
  readonly name: string
  readonly door: Door
  /** null: on loopback, as all the others. */
  readonly place: LanPlace | null
  /** Starts it; once more, with what it has stored, where it ended. */
  open(): Promise<void>
  /** Ends it without a goodbye. */
  kill(): Promise<void>
  /** Tells it to go, as a person does who closes the tab or presses Ctrl-C. */
  leave(): Promise<void>
  /** A new start in the place of the present one. */
  reload(): Promise<void>
  setFrozen(isFrozen: boolean): Promise<void>
  setSlow(isSlow: boolean): Promise<void>
  /** Undoes whatever was done to it. */
  restore(): Promise<void>
  /** What it takes, bytes: a process all in all, a tab its heap after a collection. */
  memoryBytes(): Promise<number>
  /** What it says of itself, for whoever looks for a fault. */
  story(): Promise<string>
  close(): Promise<void>
}

/** What a device lends, MB: enough for every block of the small model. */
export const PLEDGE_MB = 64

/** The join URL that leads through a door. */
export function throughDoor(joinUrl: string, door: Door): string {
  const url = new URL(joinUrl)
  url.hostname = door.address
  url.port = String(door.port)
  return url.href
}
