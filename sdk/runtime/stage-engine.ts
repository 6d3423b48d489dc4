import type { Tensor } from 'onnxruntime-common'
import { CrowdError } from '../core/errors.ts'
import type { SessionId } from '../core/ids.ts'
import { STAGE_LOAD_MS, STAGE_STEP_MS } from '../core/limits.ts'
import { contains, sameRange, type BlockRange } from '../core/model/block-range.ts'
import { embeddingRows } from '../core/model/embedding-table.ts'
import type { Block, Manifest } from '../core/model/manifest.ts'
import { createSampler, type Sampler } from '../core/sampling/sampler.ts'
import { createBlockSession, readFloats, type BlockSession } from './block-session.ts'
import { requireFinite } from './finite.ts'
import type { KvCache } from './kv-cache.ts'
import { createGpuKvCache } from './kv-cache-gpu.ts'
import { createRowsKvCache } from './kv-cache-rows.ts'
import type { OrtBackend } from './ort-backend.ts'
import type { OrtQueue } from './ort-queue.ts'
import { runtimeError } from './runtime-error.ts'
import { createSessionTable, type StageSession } from './session-table.ts'
import type { BlockBytes, StageOutput, StageRunner, StageStep } from './stage-runner.ts'
import { checkRange, checkStep } from './step-check.ts'

type LoadedBlock =
  | { readonly kind: 'embedding'; readonly data: Uint8Array }
  | { readonly kind: 'layer' | 'head'; readonly session: BlockSession }

type Stage = {
  readonly manifest: Manifest
  readonly range: BlockRange
  readonly sampler: Sampler
}

export type StageEngine = Omit<StageRunner, 'start'>

/**
 * A stage on one opened backend: one session per block, the embedding's rows and the sampler in
 * TypeScript. Every method is one job on the queue, so a whole step runs undisturbed.
 */
export function createStageEngine(deps: {
  readonly backend: OrtBackend
  readonly queue: OrtQueue
}): StageEngine {
  const { backend, queue } = deps
  const blocks = new Map<number, LoadedBlock>()
  const sessions = createSessionTable()
  let stage: Stage | null = null

  function currentStage(): Stage {
    const failure = backend.failure()
    if (failure !== null) throw new CrowdError('stage-failed', failure)
    if (stage === null) throw new CrowdError('stage-failed', 'no stage is set')
    return stage
  }

  async function free(keep: (block: number) => boolean): Promise<void> {
    for (const [index, block] of [...blocks]) {
      if (keep(index)) continue
      blocks.delete(index)
      // After a device loss the sessions are gone already and can't be released.
      if (block.kind !== 'embedding' && backend.failure() === null) await block.session.release()
    }
  }

  async function setStage(manifest: Manifest, range: BlockRange): Promise<number[]> {
    checkRange(manifest, range)
    const isSameModel = stage?.manifest.revision === manifest.revision
    // Caches belong to a range: a session can't go on over a hole.
    if (!isSameModel || !sameRange(stage?.range ?? null, range)) sessions.clear()
    await free((block) => isSameModel && contains(range, block))
    stage = { manifest, range, sampler: createSampler(manifest.vocabSize) }
    const wanted: number[] = []
    for (let block = range.start; block < range.end; block++) {
      if (!blocks.has(block)) wanted.push(block)
    }
    return wanted
  }

  async function loadBlock(index: number, bytes: BlockBytes): Promise<void> {
    const { manifest, range } = currentStage()
    const block = manifest.blocks[index]
    if (block === undefined || !contains(range, index)) {
      throw new CrowdError('bad-request', `block ${index} is not part of this stage`)
    }
    if (blocks.has(index)) return
    blocks.set(index, await load(block, index, bytes))
  }

  async function load(block: Block, index: number, bytes: BlockBytes): Promise<LoadedBlock> {
    const { graph, data } = bytes
    if (data.byteLength !== block.dataBytes) {
      throw new CrowdError(
        'model-invalid',
        `block ${index} has ${data.byteLength} bytes of weights, expected ${block.dataBytes}`,
      )
    }
    if (block.kind === 'embedding') return { kind: 'embedding', data }
    if (graph === null) throw new CrowdError('model-invalid', `block ${index} has no graph`)
    const session = await createBlockSession(backend, { graph, data })
    return { kind: block.kind, session }
  }

  async function step(request: StageStep): Promise<StageOutput> {
    const current = currentStage()
    const count = checkStep(current.manifest, current.range, request)
    const started = performance.now()
    const session = sessions.at(request.session, request.position)
    try {
      const output = await forward(current, session, request, count)
      const failure = backend.failure()
      // Reads from a lost device give zeros without an error.
      if (failure !== null) throw new CrowdError('stage-failed', failure)
      session.length = request.position + count
      return { ...output, computeMs: performance.now() - started }
    } catch (thrown) {
      throw runtimeError(thrown, 'a step failed', 'stage-failed')
    }
  }

  async function forward(
    current: Stage,
    session: StageSession,
    request: StageStep,
    count: number,
  ): Promise<StepResult> {
    const { manifest, range } = current
    const { position } = request
    const hidden = await throughLayers(current, session, request, count)
    requireFinite(hidden, 'the activation of this stage')
    if (range.end < manifest.layerCount + 2) return { kind: 'hidden', data: hidden }
    if (request.sample === null) return { kind: 'nothing' }
    const logits = await runHead(manifest, hidden.subarray(hidden.length - manifest.hiddenSize))
    const sampled = current.sampler.sample({
      ...request.sample,
      logits,
      position: position + count,
    })
    return { kind: 'token', sampled }
  }

  /** [S, H] before the head, or after the stage's last layer. */
  async function throughLayers(
    { manifest, range }: Stage,
    session: StageSession,
    { input, position }: StageStep,
    count: number,
  ): Promise<Float32Array> {
    const start = input.kind === 'hidden' ? input.data : embed(manifest, input.ids)
    let hidden: Tensor = new backend.ort.Tensor('float32', start, [1, count, manifest.hiddenSize])
    const firstLayer = Math.max(range.start, 1)
    const endLayer = Math.min(range.end, manifest.layerCount + 1)
    for (let index = firstLayer; index < endLayer; index++) {
      const layer = loadedSession(index)
      const cache = session.caches.get(index) ?? newCache(manifest, layer)
      session.caches.set(index, cache)
      const next = await layer.runLayer(hidden, cache, position)
      if (hidden.location !== 'cpu') hidden.dispose()
      hidden = next
    }
    return readFloats(hidden)
  }

  function embed(manifest: Manifest, ids: Int32Array): Float32Array {
    const block = blocks.get(0)
    const table = manifest.blocks[0]?.table
    if (block?.kind !== 'embedding') throw new CrowdError('stage-failed', 'block 0 is not loaded')
    if (table === undefined) throw new CrowdError('model-invalid', 'block 0 has no table')
    return embeddingRows(table, block.data, ids)
  }

  async function runHead(manifest: Manifest, lastRow: Float32Array): Promise<Float32Array> {
    const head = loadedSession(manifest.layerCount + 1)
    // A copy of its own: some providers take the whole buffer below a view.
    const hidden = new backend.ort.Tensor('float32', lastRow.slice(), [1, 1, manifest.hiddenSize])
    const logits = await head.runHead(hidden)
    requireFinite(logits, 'the logits')
    return logits
  }

  function loadedSession(index: number): BlockSession {
    const block = blocks.get(index)
    if (block === undefined || block.kind === 'embedding') {
      throw new CrowdError('stage-failed', `block ${index} is not loaded`)
    }
    return block.session
  }

  function newCache(manifest: Manifest, layer: BlockSession): KvCache {
    const { ort, device } = backend
    if (layer.kv === 'delta') return createRowsKvCache(ort, manifest)
    if (layer.kv === 'shared' && device !== null) return createGpuKvCache(ort, device, manifest)
    throw new CrowdError('model-invalid', `a layer with ${layer.kv} caches can't run here`)
  }

  return {
    setStage: (manifest, range) =>
      queue.run('setting the stage', STAGE_LOAD_MS, () => setStage(manifest, range)),
    loadBlock: (block, bytes) =>
      queue.run(`loading block ${block}`, STAGE_LOAD_MS, () => loadBlock(block, bytes)),
    run: (request) => queue.run('a step', STAGE_STEP_MS, () => step(request)),
    release: (session: SessionId) =>
      queue.run('releasing a session', STAGE_STEP_MS, async () => {
        sessions.release(session)
        await Promise.resolve()
      }),
    close: () =>
      queue.run('closing the stage', STAGE_LOAD_MS, async () => {
        sessions.clear()
        stage = null
        await free(() => false)
      }),
  }
}

type StepResult =
  | { readonly kind: 'hidden'; readonly data: Float32Array }
  | { readonly kind: 'nothing' }
  | { readonly kind: 'token'; readonly sampled: ReturnType<Sampler['sample']> }
