import type { SafeStorage } from '../ui/safe-storage.ts'
import { readTrail, type CrashTrail } from './crash-trail.ts'

/** What one tab remembers across a reload (session storage) and a device across visits (local storage). */
const WISH = 'crowdinfer.tab.wish'
const TRAIL = 'crowdinfer.device.trail'
const NAME = 'crowdinfer.device.name'
const PLEDGE = 'crowdinfer.device.pledge-mb'

type Wish = 'none' | 'contribute' | 'paused'

export interface TabMemory {
  /** What the owner of this tab asked for last. */
  wish(): Wish
  setWish(wish: Wish): void
  /** What tabs of this device began and did not end. */
  trail(): CrashTrail
  setTrail(trail: CrashTrail): void
  name(): string
  setName(name: string): void
  pledgeMb(): number | null
  setPledgeMb(pledgeMb: number): void
}

export function createTabMemory(tab: SafeStorage, device: SafeStorage): TabMemory {
  return {
    wish() {
      const kept = tab.get(WISH)
      return kept === 'contribute' || kept === 'paused' ? kept : 'none'
    },
    setWish: (wish) => (wish === 'none' ? tab.remove(WISH) : tab.set(WISH, wish)),
    trail: () => readTrail(device.get(TRAIL)),
    setTrail: (trail) => device.set(TRAIL, JSON.stringify(trail)),
    name: () => device.get(NAME) ?? '',
    setName: (name) => device.set(NAME, name),
    pledgeMb() {
      const kept = Number(device.get(PLEDGE))
      return Number.isFinite(kept) && kept > 0 ? kept : null
    },
    setPledgeMb: (pledgeMb) => device.set(PLEDGE, String(pledgeMb)),
  }
}
