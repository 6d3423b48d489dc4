import { toCrowdError, type CrowdError } from '../../sdk/core/errors.ts'
import type { createBrowserWorker } from '../../sdk/index.browser.ts'
import type { Worker, WorkerSnapshot } from '../../sdk/worker/worker-snapshot.ts'
import { cleanName, type PageAddress } from '../ui/page-address.ts'
import { createCrashWatch, type CrashWatch } from './crash-watch.ts'
import type { Device } from './device.ts'
import type { DeviceTabs } from './device-tabs.ts'
import { addEvents, snapshotEvents, type LoggedEvent } from './event-log.ts'
import { BYTES_PER_MB, cleanPledgeMb, defaultPledgeMb, PLEDGE_MIN_MB } from './pledge.ts'
import { buildReport } from './report.ts'
import type { TabMemory } from './tab-memory.ts'

type ContributionDeps = {
  readonly createWorker: typeof createBrowserWorker
  readonly address: PageAddress
  readonly device: Device
  readonly memory: TabMemory
  readonly tabs: DeviceTabs
  /** Asks the browser to keep the pieces; called on the owner's click. */
  readonly persist: () => Promise<unknown>
  /** Deletes every stored piece. */
  readonly deletePieces: () => Promise<void>
  readonly build: string
  /** Milliseconds since the page was opened. */
  readonly now: () => number
  /** Runs `task` after `ms` unless the returned function was called. */
  readonly later: (ms: number, task: () => void) => () => void
}

/** Answers that still run get this long when the owner leaves. */
export const DRAIN_MS = 10_000

/**
 * `asking`: no consent yet. `resting`: reloaded while paused, nothing runs. `starting`: the worker is being
 * made. `live`: there is a worker, see its snapshot. `gone`: left.
 */
type ContributionStage = 'asking' | 'resting' | 'starting' | 'live' | 'gone'

/** Everything between the owner of a device and its worker. */
export class Contribution {
  stage = $state<ContributionStage>('asking')
  snapshot = $state.raw<WorkerSnapshot | null>(null)
  /** A failure that isn't in the snapshot: the worker could not be made or started. */
  failure = $state.raw<CrowdError | null>(null)
  name = $state('')
  pledgeMb = $state(0)
  otherTab = $state(false)
  /** The owner had the stored pieces deleted. */
  deleted = $state(false)
  /** What a tab of this device did when the browser killed it; empty otherwise. */
  killed = $state('')
  /** It was killed again and again: nothing begins by itself. */
  stopped = $state(false)
  /** The owner leaves as soon as the answers that run here went to others, or ended. */
  leaving = $state(false)
  /** Tabs of this browser that share what the device lends, this one included. */
  sharers = $state(1)
  /** Why the browser's storage could not be used; empty while it can, or when that isn't known. */
  storageFailure = $state('')
  readonly device: Device
  readonly #deps: ContributionDeps
  readonly #crashes: CrashWatch
  #worker: Worker | null = null
  /** Raised by every start and every end, so that a worker that comes too late is let go of. */
  #run = 0
  #events: readonly LoggedEvent[] = []

  constructor(deps: ContributionDeps) {
    const { address, device, memory } = deps
    this.#deps = deps
    this.device = device
    this.name = address.name || memory.name() || device.label
    const kept = memory.pledgeMb() ?? defaultPledgeMb(device.memoryGb)
    this.pledgeMb = cleanPledgeMb(address.pledgeMb, kept)
    this.#crashes = createCrashWatch({ tab: deps.tabs.id, memory, now: deps.now })
    deps.tabs.onChange(() => void this.#share())
  }

  /** What this tab lends. */
  readonly lentBytes = $derived(Math.round((this.pledgeMb * BYTES_PER_MB) / this.sharers))
  readonly error = $derived(this.failure ?? this.snapshot?.error ?? null)

  /** Goes on where a reload interrupted, or at once where the address says so. */
  async open(): Promise<void> {
    const { address, memory, tabs } = this.#deps
    const others = await tabs.others()
    this.otherTab = others.length > 0
    // The owner may have clicked while the browser was asked.
    if (this.stage !== 'asking') return
    this.killed = this.#crashes.look(others)
    if (this.killed !== '') this.#lendHalf()
    this.stopped = this.#crashes.isStopped
    const wish = memory.wish()
    if (wish === 'paused') this.stage = 'resting'
    else if (this.stopped) return
    else if (address.auto || (wish === 'contribute' && !this.otherTab)) await this.start()
  }

  async start(): Promise<void> {
    if (this.stage === 'starting' || this.stage === 'live') return
    const { memory, tabs, address } = this.#deps
    this.stage = 'starting'
    this.failure = null
    this.snapshot = null
    this.leaving = false
    this.deleted = false
    this.storageFailure = ''
    this.name = cleanName(this.name) || this.device.label
    memory.setName(this.name)
    memory.setWish('contribute')
    tabs.take()
    this.#note(['start asked for'])
    const run = ++this.#run
    try {
      await this.#share()
      const worker = await this.#deps.createWorker({
        secret: address.secret,
        name: this.name,
        pledgeBytes: this.lentBytes,
        prefer: address.provider ?? 'auto',
        onStorageFallback: (reason) => {
          if (run !== this.#run) return
          this.storageFailure = reason
          this.#note([`storage: ${reason}`])
        },
      })
      if (run !== this.#run) {
        await worker.leave()
        return
      }
      this.#worker = worker
      worker.onChange((snapshot) => this.#follow(worker, snapshot))
      this.#follow(worker, worker.snapshot())
      this.stage = 'live'
      worker.setHidden(document.hidden)
      await worker.start()
    } catch (thrown) {
      if (run === this.#run) this.#fail(toCrowdError(thrown))
    }
  }

  /** The consent click: also the moment at which a browser may be asked to keep the pieces. */
  async consent(): Promise<void> {
    // A refusal, or none at all, changes nothing: the pieces are kept as long as there is space.
    this.#deps.persist().catch((thrown: unknown) => {
      this.#note([`keeping pieces: ${toCrowdError(thrown).message}`])
    })
    await this.start()
  }

  /** After a failure: a fresh worker, with half the memory where there was too little. */
  async again(): Promise<void> {
    if (this.error?.code === 'out-of-memory') this.#lendHalf()
    await this.#drop()
    this.stage = 'asking'
    await this.start()
  }

  async pause(): Promise<void> {
    this.#deps.memory.setWish('paused')
    await this.#attempt((worker) => worker.pause())
  }

  async resume(): Promise<void> {
    this.#deps.memory.setWish('contribute')
    if (this.stage === 'resting') await this.start()
    else await this.#attempt((worker) => worker.resume())
  }

  /** Lets the answers that run here go to others, or end, for a while; the second call leaves at once. */
  async leave(): Promise<void> {
    this.#deps.memory.setWish('none')
    const worker = this.#worker
    const run = this.#run
    if (worker !== null && !this.leaving && worker.snapshot().sessions > 0) {
      this.leaving = true
      await this.#attempt((one) => one.pause())
      await withoutSessions(worker, this.#deps.later)
      if (run !== this.#run) return
    }
    this.leaving = false
    this.killed = ''
    this.stage = 'gone'
    await this.#drop()
  }

  /** After leaving: the layers need not stay on this device. */
  async deleteStored(): Promise<void> {
    try {
      await this.#deps.deletePieces()
      this.deleted = true
    } catch (thrown) {
      this.#fail(toCrowdError(thrown, 'storage-failed'))
    }
  }

  /** The page goes away: say goodbye, but remember the owner's wish for a reload. */
  hide(): void {
    void this.#drop()
  }

  setPledge(pledgeMb: number | null | undefined): void {
    this.pledgeMb = cleanPledgeMb(pledgeMb, this.pledgeMb)
    this.#deps.memory.setPledgeMb(this.pledgeMb)
    this.#worker?.setPledge(this.lentBytes)
  }

  setHidden(hidden: boolean): void {
    this.#crashes.setHidden(hidden)
    this.#worker?.setHidden(hidden)
  }

  /** The browser is about to freeze the page. */
  freeze(): void {
    this.#worker?.sleep()
  }

  thaw(): void {
    this.#worker?.wake()
  }

  report(): string {
    return buildReport({
      build: this.#deps.build,
      device: this.device,
      pledgeMb: this.pledgeMb,
      snapshot: this.snapshot,
      error: this.error,
      events: this.#events,
    })
  }

  /** Tabs of one device share its memory, but for one whose address says what it lends. */
  async #share(): Promise<void> {
    const { tabs, address } = this.#deps
    if (address.pledgeMb !== null) return
    const sharers = 1 + (await tabs.others()).length
    if (sharers === this.sharers) return
    this.sharers = sharers
    this.#worker?.setPledge(this.lentBytes)
  }

  #lendHalf(): void {
    this.setPledge(Math.max(Math.floor(this.pledgeMb / 2), PLEDGE_MIN_MB))
  }

  async #attempt(work: (worker: Worker) => Promise<void>): Promise<void> {
    const run = this.#run
    try {
      if (this.#worker !== null) await work(this.#worker)
    } catch (thrown) {
      if (run === this.#run) this.#fail(toCrowdError(thrown))
    }
  }

  async #drop(): Promise<void> {
    const worker = this.#worker
    this.#worker = null
    this.#run++
    this.#deps.tabs.release()
    this.#crashes.rest()
    try {
      await worker?.leave()
    } catch (thrown) {
      // It is being let go of anyway; the line is for a report.
      this.#note([`leaving: ${toCrowdError(thrown).message}`])
    }
  }

  #follow(worker: Worker, snapshot: WorkerSnapshot): void {
    if (worker !== this.#worker) return
    this.#note(snapshotEvents(this.snapshot, snapshot))
    this.snapshot = snapshot
    this.#crashes.follow(snapshot)
  }

  #fail(error: CrowdError): void {
    this.failure = error
    this.stage = 'live'
    this.#note([`error ${error.code}: ${error.message}`])
  }

  #note(texts: readonly string[]): void {
    this.#events = addEvents(this.#events, texts, this.#deps.now())
  }
}

/** Resolves when no answer goes through the worker any more, or after DRAIN_MS. */
function withoutSessions(worker: Worker, later: ContributionDeps['later']): Promise<void> {
  return new Promise((resolve) => {
    let stop: () => void = () => undefined
    const end = (): void => {
      cancel()
      // The first call comes before `stop` exists.
      queueMicrotask(() => stop())
      resolve()
    }
    const cancel = later(DRAIN_MS, end)
    stop = worker.onChange(({ sessions, phase }) => {
      if (sessions === 0 || phase === 'failed' || phase === 'left') end()
    })
  })
}
