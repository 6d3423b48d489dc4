import { toCrowdError, type CrowdError } from '../../sdk/core/errors.ts'
import type { createBrowserWorker } from '../../sdk/index.browser.ts'
import type { Worker, WorkerSnapshot } from '../../sdk/worker/worker-snapshot.ts'
import { cleanName, type PageAddress } from '../ui/page-address.ts'
import type { Device } from './device.ts'
import { addEvents, snapshotEvents, type LoggedEvent } from './event-log.ts'
import { describeHolding } from './phase-text.ts'
import { BYTES_PER_MB, cleanPledgeMb, defaultPledgeMb } from './pledge.ts'
import { buildReport } from './report.ts'
import type { TabLock } from './tab-lock.ts'
import type { TabMemory } from './tab-memory.ts'

type ContributionDeps = {
  readonly createWorker: typeof createBrowserWorker
  readonly address: PageAddress
  readonly device: Device
  readonly memory: TabMemory
  readonly lock: TabLock
  /** Asks the browser to keep the pieces; called on the owner's click. */
  readonly persist: () => Promise<unknown>
  /** Deletes every stored piece. */
  readonly deletePieces: () => Promise<void>
  readonly build: string
  /** Milliseconds since the page was opened. */
  readonly now: () => number
}

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
  /** What was being loaded when the browser killed this tab; empty otherwise. */
  killed = $state('')
  /** Why the browser's storage could not be used; empty while it can, or when that isn't known. */
  storageFailure = $state('')
  readonly device: Device
  readonly #deps: ContributionDeps
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
    this.killed = memory.killedWhileLoading()
    memory.notePeace()
  }

  readonly error = $derived(this.failure ?? this.snapshot?.error ?? null)

  /** Goes on where a reload interrupted, or at once where the address says so. */
  async open(): Promise<void> {
    const { address, memory, lock } = this.#deps
    this.otherTab = await lock.heldElsewhere()
    // The owner may have clicked while the browser was asked.
    if (this.stage !== 'asking') return
    const wish = memory.wish()
    if (wish === 'paused') this.stage = 'resting'
    else if (address.auto) await this.start()
    else if (wish === 'contribute' && !this.otherTab && this.killed === '') await this.start()
  }

  async start(): Promise<void> {
    if (this.stage === 'starting' || this.stage === 'live') return
    const { memory, lock, address } = this.#deps
    this.stage = 'starting'
    this.failure = null
    this.snapshot = null
    this.killed = ''
    this.deleted = false
    this.storageFailure = ''
    this.name = cleanName(this.name) || this.device.label
    memory.setName(this.name)
    memory.setWish('contribute')
    lock.take()
    this.#note(['start asked for'])
    const run = ++this.#run
    try {
      const worker = await this.#deps.createWorker({
        secret: address.secret,
        name: this.name,
        pledgeBytes: Math.round(this.pledgeMb * BYTES_PER_MB),
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

  /** After a failure: a fresh worker. */
  async again(): Promise<void> {
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

  async leave(): Promise<void> {
    this.#deps.memory.setWish('none')
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
    this.#deps.memory.notePeace()
    void this.#drop()
  }

  setPledge(pledgeMb: number | null | undefined): void {
    this.pledgeMb = cleanPledgeMb(pledgeMb, this.pledgeMb)
    this.#deps.memory.setPledgeMb(this.pledgeMb)
    this.#worker?.setPledge(Math.round(this.pledgeMb * BYTES_PER_MB))
  }

  setHidden(hidden: boolean): void {
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
    this.#deps.lock.release()
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
    // A tab that the browser kills for its memory leaves this behind for the next load.
    if (snapshot.phase === 'loading') this.#deps.memory.noteLoading(describeHolding(snapshot))
    else this.#deps.memory.notePeace()
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
