import { CrowdError, toCrowdError } from '../core/errors.ts'
import { describeRange, type BlockRange } from '../core/model/block-range.ts'
import { blockPieces, type Block, type Manifest, type Piece } from '../core/model/manifest.ts'
import type { ClientMessageOf } from '../protocol/client-to-server.ts'
import type { ServerMessageOf } from '../protocol/server-to-client.ts'
import type { StageRunner } from '../runtime/stage-runner.ts'
import type { ShardStore } from '../storage/shard-store.ts'
import type { FetchPieces } from './fetch-pieces.ts'
import { createLoadBlock } from './load-block.ts'
import { warmUp } from './warm-up.ts'

export type StageHolderDeps = {
  runner: StageRunner
  store: ShardStore
  fetchPieces: FetchPieces
  report(message: ClientMessageOf<'stage-state'>): void
  onChange(): void
  /** What a decode step of a stage that was loaded takes, ms. */
  onMeasured(stepMs: number): void
  /** More pieces lie in the store than before. */
  onStored(): void
  /** Blocks are loaded that were not there: whatever caches there were are gone with what was lost. */
  onEmpty(): void
}

export type HeldStage = {
  readonly assignment: number
  readonly range: BlockRange | null
  readonly reason: string
  readonly state: 'fetching' | 'loading' | 'ready' | 'failed'
  readonly doneBytes: number
  readonly totalBytes: number
  readonly fetchedBytes: number
  readonly peerBytes: number
  readonly error: CrowdError | null
}

/** Carries out assignments: fetch the pieces of the range, then load them block by block. */
export type StageHolder = {
  /** A newer assignment replaces an older one, also one that is still under way. Never throws. */
  assign(order: ServerMessageOf<'assign'>, manifest: Manifest): Promise<void>
  /**
   * Loads again what the runner lost; true when there was something. With a `refusal` it doesn't, and says so to the host
   * as its failure. What it can't load any more is such a failure too. @throws CrowdError
   */
  reload(refusal?: CrowdError): Promise<boolean>
  held(): HeldStage | null
  /** Lets go of what is held, without a word to the host; pieces stay stored. */
  drop(): void
  /** Says again what is held, after a reconnect. */
  announce(): void
  stop(): void
}

const EMPTY: BlockRange = { start: 0, end: 0 }

export function createStageHolder(deps: StageHolderDeps): StageHolder {
  const loadBlock = createLoadBlock(deps)
  let held: HeldStage | null = null
  let model: Manifest | null = null
  let running = new AbortController()
  /** Loads never overlap: a replaced one ends before the next begins. */
  let tail: Promise<void> = Promise.resolve()

  function update(change: Partial<HeldStage>): void {
    if (held === null) return
    held = { ...held, ...change }
    deps.onChange()
  }

  function announce(): void {
    if (held !== null) deps.report(reportOf(held))
  }

  async function fetchAll(blocks: readonly Block[], signal: AbortSignal): Promise<void> {
    const pieces = uniquePieces(blocks)
    update({ totalBytes: pieces.reduce((sum, piece) => sum + piece.bytes, 0) })
    announce()
    let announced = 0
    await deps.fetchPieces(pieces, {
      signal,
      complete: true,
      onProgress(doneBytes, fetchedBytes, peerBytes) {
        update({ doneBytes, fetchedBytes, peerBytes })
        // Once per percent is enough for the dashboard.
        if (held === null || doneBytes - announced < held.totalBytes / 100) return
        announced = doneBytes
        announce()
      },
    })
  }

  async function load(manifest: Manifest, range: BlockRange, signal: AbortSignal): Promise<void> {
    await fetchAll(manifest.blocks.slice(range.start, range.end), signal)
    update({ state: 'loading' })
    announce()
    await loadWanted({ manifest, range }, await deps.runner.setStage(manifest, range), signal)
  }

  async function loadWanted(
    stage: { readonly manifest: Manifest; readonly range: BlockRange },
    wanted: readonly number[],
    signal: AbortSignal,
  ): Promise<void> {
    if (wanted.length > 0) deps.onEmpty()
    for (const index of wanted) {
      signal.throwIfAborted()
      await loadBlock(stage.manifest, index, signal)
    }
    // What is loaded already may be in use, and is known.
    if (wanted.length > 0) deps.onMeasured(await warmUp(deps.runner, stage, signal))
    signal.throwIfAborted()
    update({ state: 'ready' })
    announce()
    deps.onStored()
  }

  async function reload(refusal?: CrowdError): Promise<boolean> {
    if (held === null || held.range === null || held.state !== 'ready' || model === null)
      return false
    const { signal } = running
    const stage = { manifest: model, range: held.range }
    const wanted = await deps.runner.setStage(stage.manifest, stage.range)
    if (wanted.length === 0) return false
    if (refusal !== undefined) {
      failed(refusal, stage)
      deps.onEmpty()
      return true
    }
    update({ state: 'loading' })
    announce()
    try {
      await loadWanted(stage, wanted, signal)
    } catch (thrown) {
      // Another order came; it loads what it needs.
      if (signal.aborted) return false
      failed(thrown, stage)
    }
    return true
  }

  /** Told to the host, which gives other orders. */
  function failed(
    thrown: unknown,
    { manifest, range }: { readonly manifest: Manifest; readonly range: BlockRange | null },
  ): void {
    const error = toCrowdError(thrown, 'stage-failed')
    const what = range === null ? 'nothing' : describeRange(range, manifest.layerCount)
    update({
      state: 'failed',
      error: new CrowdError(error.code, `${what}: ${error.message}`, { cause: error }),
    })
    announce()
  }

  async function carryOut(
    manifest: Manifest,
    { range, keep }: Pick<ServerMessageOf<'assign'>, 'range' | 'keep'>,
    signal: AbortSignal,
  ): Promise<void> {
    try {
      if (signal.aborted) return
      // A healthy runner answers at once; one whose thread died starts anew.
      await deps.runner.start()
      if (range !== null) await load(manifest, range, signal)
      else {
        await deps.runner.setStage(manifest, EMPTY)
        if (!keep) return
        await fetchAll(manifest.blocks.slice(keep.start, keep.end), signal)
        deps.onStored()
      }
    } catch (thrown) {
      if (signal.aborted) return
      failed(thrown, { manifest, range: range ?? keep ?? null })
    }
  }

  return {
    assign(order, manifest) {
      running.abort()
      running = new AbortController()
      const { signal } = running
      model = manifest
      // A device that is set aside because it failed goes on showing why.
      const error = order.range === null ? (held?.error ?? null) : null
      held = orderedStage(order, error)
      deps.onChange()
      tail = tail.then(() => carryOut(manifest, order, signal))
      return tail
    },
    reload(refusal) {
      const done = tail.then(() => reload(refusal))
      tail = settled(done)
      return done
    },
    held: () => held,
    drop() {
      running.abort()
      const former = model
      held = null
      model = null
      deps.onChange()
      if (former === null) return
      // A runner that can't is told by the next stage; this one is only to free memory early.
      tail = settled(tail.then(() => deps.runner.setStage(former, EMPTY)))
    },
    announce,
    stop() {
      running.abort()
    },
  }
}

function reportOf(held: HeldStage): ClientMessageOf<'stage-state'> {
  const { assignment, state, doneBytes, totalBytes, fetchedBytes, peerBytes, error } = held
  const told = { assignment, state, doneBytes, totalBytes, fetchedBytes, peerBytes }
  return { kind: 'stage-state', ...told, ...(error === null ? {} : { error: error.toWire() }) }
}

function orderedStage(
  { assignment, range, reason }: ServerMessageOf<'assign'>,
  error: CrowdError | null,
): HeldStage {
  const state = range === null ? 'ready' : 'fetching'
  const bytes = { doneBytes: 0, totalBytes: 0, fetchedBytes: 0, peerBytes: 0 }
  return { assignment, range, reason, state, ...bytes, error }
}

/** What comes later must not fail with it. */
async function settled(work: Promise<unknown>): Promise<void> {
  await work.catch(() => undefined)
}

function uniquePieces(blocks: readonly Block[]): Piece[] {
  return [...new Map(blocks.flatMap(blockPieces).map((piece) => [piece.sha256, piece])).values()]
}
