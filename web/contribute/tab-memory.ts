import type { SafeStorage } from '../ui/safe-storage.ts'

/** What one tab remembers across a reload (session storage) and a device across visits (local storage). */
const WISH = 'crowdinfer.tab.wish'
const LOADING = 'crowdinfer.tab.loading'
const NAME = 'crowdinfer.device.name'
const PLEDGE = 'crowdinfer.device.pledge-mb'

type Wish = 'none' | 'contribute' | 'paused'

export interface TabMemory {
  /** What the owner of this tab asked for last. */
  wish(): Wish
  setWish(wish: Wish): void
  /** What the tab was loading when the browser killed it; empty when it ended in peace. */
  killedWhileLoading(): string
  noteLoading(what: string): void
  notePeace(): void
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
    killedWhileLoading: () => tab.get(LOADING) ?? '',
    noteLoading: (what) => tab.set(LOADING, what),
    notePeace: () => tab.remove(LOADING),
    name: () => device.get(NAME) ?? '',
    setName: (name) => device.set(NAME, name),
    pledgeMb() {
      const kept = Number(device.get(PLEDGE))
      return Number.isFinite(kept) && kept > 0 ? kept : null
    },
    setPledgeMb: (pledgeMb) => device.set(PLEDGE, String(pledgeMb)),
  }
}
