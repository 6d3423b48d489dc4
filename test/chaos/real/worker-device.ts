import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { Door } from '../../support/door.ts'
import { startWorkerProcess, type WorkerProcess } from '../../support/worker-process.ts'
import { launcherOf, type LanPlace } from './lan.ts'
import { PLEDGE_MB, throughDoor, type RealDevice } from './real-device.ts'

/** Of each cycle of a slow process it may run the rest, ms. */
const SLOW_CYCLE_MS = 100
const SLOW_STOPPED_MS = 90
/** A worker that was told to go ends its answers first. */
const LEAVE_MS = 20_000

const STORY_CHARS = 600

/** MB. Node lets garbage lie until there is more of it; then a process seems to grow. */
const SMALL_HEAP = { NODE_OPTIONS: '--max-old-space-size=64 --max-semi-space-size=1' }

export function createWorkerDevice(options: {
  readonly name: string
  readonly joinUrl: string
  readonly door: Door
  readonly place: LanPlace | null
  readonly dataDir: string
}): RealDevice {
  const { name, door, place } = options
  let worker: WorkerProcess | null = null
  let isLeaving = false
  let slow: NodeJS.Timeout | null = null

  const isAlive = (): boolean =>
    worker !== null && worker.process.exitCode === null && worker.process.signalCode === null
  const signal = (kind: 'SIGSTOP' | 'SIGCONT' | 'SIGINT'): void => {
    if (isAlive()) worker?.process.kill(kind)
  }

  const device: RealDevice = {
    kind: 'worker',
    name,
    door,
    place,
    open() {
      if (!isAlive()) {
        worker = startWorkerProcess({
          joinUrl: throughDoor(options.joinUrl, door),
          name,
          dataDir: join(options.dataDir, name),
          flags: ['--memory', `${PLEDGE_MB}MB`],
          environment: SMALL_HEAP,
          launcher: place === null ? [] : launcherOf(place),
        })
        isLeaving = false
      }
      return Promise.resolve()
    },
    async kill() {
      await worker?.kill()
    },
    leave() {
      isLeaving = true
      signal('SIGINT')
      return Promise.resolve()
    },
    async reload() {
      await device.kill()
      await device.open()
    },
    setFrozen(isFrozen) {
      signal(isFrozen ? 'SIGSTOP' : 'SIGCONT')
      return Promise.resolve()
    },
    setSlow(isSlow) {
      if (slow !== null) clearInterval(slow)
      slow = null
      if (isSlow) {
        slow = setInterval(() => {
          signal('SIGSTOP')
          setTimeout(() => signal('SIGCONT'), SLOW_STOPPED_MS)
        }, SLOW_CYCLE_MS)
      }
      signal('SIGCONT')
      return Promise.resolve()
    },
    async restore() {
      await device.setSlow(false)
      door.unblock()
      if (isLeaving) await ended(worker, LEAVE_MS)
      await device.open()
    },
    memoryBytes: () => residentBytes(worker?.process.pid ?? 0),
    story: () => Promise.resolve(worker?.output().slice(-STORY_CHARS) ?? ''),
    async close() {
      await device.setSlow(false)
      await device.kill()
      await door.close()
    },
  }
  return device
}

/** Kills what does not end by itself. */
async function ended(worker: WorkerProcess | null, limitMs: number): Promise<void> {
  const timer = setTimeout(() => void worker?.kill(), limitMs)
  await worker?.exited
  clearTimeout(timer)
}

/** What Linux counts as resident in a process. @throws Error elsewhere */
async function residentBytes(pid: number): Promise<number> {
  const status = await readFile(`/proc/${pid}/status`, 'utf8')
  const kilobytes = /^VmRSS:\s+(\d+) kB$/m.exec(status)?.[1]
  if (kilobytes === undefined) throw new Error(`process ${pid} tells nothing of its memory`)
  return Number(kilobytes) * 1_024
}
