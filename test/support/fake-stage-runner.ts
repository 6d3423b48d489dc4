import { CrowdError } from '../../sdk/core/errors.ts'
import type { SessionId } from '../../sdk/core/ids.ts'
import { SESSIONS_PER_STAGE } from '../../sdk/core/limits.ts'
import { contains, sameRange, type BlockRange } from '../../sdk/core/model/block-range.ts'
import type { Manifest } from '../../sdk/core/model/manifest.ts'
import { needsHistory, type SampledToken } from '../../sdk/core/sampling/params.ts'
import { createSampler } from '../../sdk/core/sampling/sampler.ts'
import { checkRange, checkStep } from '../../sdk/runtime/step-check.ts'
import type { StageOutput, StageRunner, StageStep } from '../../sdk/runtime/stage-runner.ts'

/** Small enough that sums of a few of them are exact in f32. */
const MODULUS = 65_521

export type FakeStageRunner = StageRunner & {
  /** Rows that the caches of each session hold: what was not released shows. */
  caches(): ReadonlyMap<SessionId, number>
}

type Session = { length: number; readonly rows: Map<number, Int32Array[]> }

/**
 * A StageRunner that computes nothing but whole numbers, so that split and unsplit runs are equal to the
 * last bit. A layer mixes each row with all rows before it, as attention does; the weights are the block
 * numbers, so any bytes of the right length will do.
 */
export function createFakeStageRunner(): FakeStageRunner {
  const loaded = new Set<number>()
  const sessions = new Map<SessionId, Session>()
  let stage: { manifest: Manifest; range: BlockRange } | null = null
  let isStarted = false
  let tail: Promise<unknown> = Promise.resolve()

  /** One after the other, as the real one; a failed job does not stop the next. */
  function queued<T>(job: () => T): Promise<T> {
    const result = tail.then(job)
    tail = result.catch(() => undefined)
    return result
  }

  function current(): { manifest: Manifest; range: BlockRange } {
    if (!isStarted || stage === null) throw new CrowdError('stage-failed', 'no stage is set')
    return stage
  }

  function sessionAt(id: SessionId, position: number): Session {
    const cached = sessions.get(id)?.length ?? 0
    if (position > cached) throw new CrowdError('stage-failed', `only ${cached} rows are cached`)
    let session = sessions.get(id)
    if (session === undefined) {
      if (sessions.size >= SESSIONS_PER_STAGE) {
        throw new CrowdError('too-many-requests', `${SESSIONS_PER_STAGE} sessions at most`)
      }
      session = { length: 0, rows: new Map() }
      sessions.set(id, session)
    }
    session.length = position
    return session
  }

  function step(request: StageStep): StageOutput {
    const { manifest, range } = current()
    const count = checkStep(manifest, range, request)
    const session = sessionAt(request.session, request.position)
    for (let block = range.start; block < range.end; block++) {
      if (!loaded.has(block)) throw new CrowdError('stage-failed', `block ${block} is not loaded`)
    }
    let rows = inputRows(manifest, request, count)
    for (let block = range.start; block < range.end; block++) {
      if (manifest.blocks[block]?.kind !== 'layer') continue
      const cached = session.rows.get(block) ?? []
      session.rows.set(block, cached)
      cached.length = request.position
      rows = rows.map((row) => {
        const mixed = layer(row, cached, block)
        cached.push(row)
        return mixed
      })
    }
    session.length = request.position + count
    return { computeMs: 0, ...output(manifest, range, request, rows) }
  }

  return {
    start() {
      isStarted = true
      return Promise.resolve({ provider: 'cpu', threads: 1, notes: [] })
    },
    setStage: (manifest, range) =>
      queued(() => {
        if (!isStarted) throw new CrowdError('stage-failed', 'the runner is not started')
        checkRange(manifest, range)
        const isSameModel = stage?.manifest.revision === manifest.revision
        if (!isSameModel || !sameRange(stage?.range ?? null, range)) sessions.clear()
        for (const block of loaded) {
          if (!isSameModel || !contains(range, block)) loaded.delete(block)
        }
        stage = { manifest, range }
        const all = Array.from({ length: range.end - range.start }, (_, i) => range.start + i)
        return all.filter((block) => !loaded.has(block))
      }),
    loadBlock: (block, { data }) =>
      queued(() => {
        const { manifest, range } = current()
        if (!contains(range, block)) throw new CrowdError('bad-request', `no block ${block} here`)
        if (data.byteLength !== manifest.blocks[block]?.dataBytes) {
          throw new CrowdError('model-invalid', `block ${block} has the wrong length`)
        }
        loaded.add(block)
      }),
    run: (request) => queued(() => step(request)),
    release: (session) =>
      queued(() => {
        sessions.delete(session)
      }),
    close: () =>
      queued(() => {
        isStarted = false
        stage = null
        loaded.clear()
        sessions.clear()
      }),
    caches: () => new Map([...sessions].map(([id, { length }]) => [id, length])),
  }
}

function inputRows(manifest: Manifest, { input }: StageStep, count: number): Int32Array[] {
  const width = manifest.hiddenSize
  return Array.from({ length: count }, (_, row) =>
    Int32Array.from({ length: width }, (_, column) =>
      input.kind === 'tokens'
        ? ((input.ids[row] ?? 0) * 257 + column * 31 + 7) % MODULUS
        : (input.data[row * width + column] ?? 0),
    ),
  )
}

function layer(row: Int32Array, past: readonly Int32Array[], block: number): Int32Array {
  const sums = Array.from(row, (value) => value * 3 + block * 101 + past.length * 13)
  const width = row.length
  for (let age = 0; age < past.length; age += 1) {
    const other = past[age]
    const weight = (age % 5) + 1
    for (let column = 0; column < width; column += 1)
      sums[column] = (sums[column] ?? 0) + (other?.[(column + 1) % width] ?? 0) * weight
  }
  return Int32Array.from(sums, (sum) => sum % MODULUS)
}

function output(
  manifest: Manifest,
  range: BlockRange,
  { sample, position }: StageStep,
  rows: readonly Int32Array[],
):
  | { kind: 'hidden'; data: Float32Array }
  | { kind: 'nothing' }
  | { kind: 'token'; sampled: SampledToken } {
  if (range.end < manifest.layerCount + 2) {
    const data = new Float32Array(rows.length * manifest.hiddenSize)
    rows.forEach((row, at) => data.set(row, at * manifest.hiddenSize))
    return { kind: 'hidden', data }
  }
  if (sample === null) return { kind: 'nothing' }
  const sum = (rows.at(-1) ?? new Int32Array(0)).reduce((a, b) => (a * 7 + b) % MODULUS, 0)
  const { vocabSize } = manifest
  if (sample.params.temperature === 0 && !needsHistory(sample.params))
    return { kind: 'token', sampled: { token: sum % vocabSize, logprob: -1, top: [] } }
  // Whole numbers again, so that the draw is the same wherever it is made.
  const logits = Float32Array.from({ length: vocabSize }, (_, id) => ((sum + 1) * (id + 7)) % 13)
  const place = { logits, position: position + rows.length }
  return { kind: 'token', sampled: createSampler(vocabSize).sample({ ...sample, ...place }) }
}
