import { CrowdError } from '../core/errors.ts'
import type { SessionId } from '../core/ids.ts'
import { PREFILL_CHUNK_TOKENS } from '../core/limits.ts'
import type { BlockRange } from '../core/model/block-range.ts'
import { evenRanges } from '../core/model/even-ranges.ts'
import type { Manifest } from '../core/model/manifest.ts'
import { prefillChunks } from '../core/model/prefill-chunks.ts'
import { needsHistory, type SampledToken, type SamplingParams } from '../core/sampling/params.ts'
import type {
  BlockBytes,
  RunnerReport,
  StageOutput,
  StageRunner,
  StageStep,
} from '../runtime/stage-runner.ts'

export type LocalChainDeps = {
  manifest: Manifest
  stages: number
  makeRunner(): StageRunner
  readBlock(block: number): Promise<BlockBytes>
}

export type LocalRequest = {
  prompt: readonly number[]
  maxTokens: number
  sampling: SamplingParams
  /** Besides the model's own end tokens. */
  stopIds?: readonly number[]
  onToken?(sampled: SampledToken): void
  signal?: AbortSignal
}

export type LocalAnswer = {
  /** The tokens after the prompt, a final end token included. */
  ids: number[]
  reason: 'stop' | 'length'
  /** Mean compute time of a decode step, ms, by stage. */
  msPerStage: number[]
  firstTokenMs: number
  totalMs: number
}

/** A whole chain in one process: the reference for rings, `crowdinfer run`, and the score. */
export type LocalChain = {
  readonly report: RunnerReport
  /** @throws CrowdError prompt-too-long, aborted, stage-failed */
  generate(request: LocalRequest): Promise<LocalAnswer>
  close(): Promise<void>
}

export async function openLocalChain(deps: LocalChainDeps): Promise<LocalChain> {
  const { manifest } = deps
  const ranges = evenRanges(manifest.layerCount, deps.stages)
  const runners = ranges.map(() => deps.makeRunner())
  const closeAll = async (): Promise<void> => {
    await Promise.all(runners.map((runner) => runner.close()))
  }
  const report = await load(deps, runners, ranges).catch(async (thrown: unknown) => {
    await closeAll()
    throw thrown
  })
  let nextSession = 1

  return {
    report,
    async generate(request) {
      const session = nextSession as SessionId
      nextSession += 1
      try {
        return await generate(manifest, runners, session, request)
      } finally {
        await Promise.all(runners.map((runner) => runner.release(session)))
      }
    },
    close: closeAll,
  }
}

async function load(
  { manifest, readBlock }: LocalChainDeps,
  runners: readonly StageRunner[],
  ranges: readonly BlockRange[],
): Promise<RunnerReport> {
  const reports: RunnerReport[] = []
  for (const [index, runner] of runners.entries()) {
    reports.push(await runner.start())
    const range = ranges[index] ?? { start: 0, end: 0 }
    for (const block of await runner.setStage(manifest, range)) {
      await runner.loadBlock(block, await readBlock(block))
    }
  }
  const [report] = reports
  if (report === undefined) throw new CrowdError('internal', 'a chain needs a stage')
  return report
}

async function generate(
  manifest: Manifest,
  runners: readonly StageRunner[],
  session: SessionId,
  request: LocalRequest,
): Promise<LocalAnswer> {
  const { prompt, sampling, signal } = request
  const limit = Math.min(request.maxTokens, roomFor(manifest, prompt.length))
  const stops = new Set([...manifest.eosTokenIds, ...(request.stopIds ?? [])])
  const ids: number[] = []
  const decodeMs = runners.map(() => 0)
  const startedAt = performance.now()
  let firstTokenMs = 0

  const sample = (): StageStep['sample'] => ({
    params: sampling,
    history: needsHistory(sampling) ? Int32Array.from([...prompt, ...ids]) : new Int32Array(),
    promptLength: prompt.length,
  })
  const decode = (token: number): StageStep => ({
    session,
    position: prompt.length + ids.length - 1,
    input: { kind: 'tokens', ids: Int32Array.of(token) },
    sample: sample(),
  })
  const addMs = (stage: number, ms: number): void => {
    decodeMs[stage] = (decodeMs[stage] ?? 0) + ms
  }

  let output: StageOutput | null = null
  for (const { position, ids: chunk, last } of prefillChunks(prompt, PREFILL_CHUNK_TOKENS)) {
    signal?.throwIfAborted()
    const input = { kind: 'tokens', ids: chunk } as const
    output = await lap(runners, { session, position, input, sample: last ? sample() : null })
  }
  for (;;) {
    const sampled = chosen(output)
    if (ids.length === 0) firstTokenMs = performance.now() - startedAt
    ids.push(sampled.token)
    request.onToken?.(sampled)
    const stopped = stops.has(sampled.token)
    if (stopped || ids.length >= limit) {
      const laps = Math.max(ids.length - 1, 1)
      return {
        ids,
        reason: stopped ? 'stop' : 'length',
        msPerStage: decodeMs.map((ms) => ms / laps),
        firstTokenMs,
        totalMs: performance.now() - startedAt,
      }
    }
    signal?.throwIfAborted()
    output = await lap(runners, decode(sampled.token), addMs)
  }
}

/** Tokens that fit behind the prompt. @throws CrowdError bad-request, prompt-too-long */
function roomFor(manifest: Manifest, promptLength: number): number {
  if (promptLength === 0) throw new CrowdError('bad-request', 'the prompt has no tokens')
  const room = manifest.contextLength - promptLength
  if (room >= 1) return room
  throw new CrowdError(
    'prompt-too-long',
    `the prompt has ${promptLength} tokens and the model holds ${manifest.contextLength}, answer included`,
  )
}

function chosen(output: StageOutput | null): SampledToken {
  if (output?.kind === 'token') return output.sampled
  throw new CrowdError('internal', 'the last stage chose no token')
}

/** One step through all stages. */
async function lap(
  runners: readonly StageRunner[],
  first: StageStep,
  onStage?: (stage: number, computeMs: number) => void,
): Promise<StageOutput> {
  let step = first
  let output: StageOutput | null = null
  for (const [stage, runner] of runners.entries()) {
    output = await runner.run({
      ...step,
      sample: stage === runners.length - 1 ? first.sample : null,
    })
    onStage?.(stage, output.computeMs)
    if (output.kind !== 'hidden') break
    step = { ...step, input: { kind: 'hidden', data: output.data } }
  }
  if (output === null) throw new CrowdError('internal', 'a chain needs a stage')
  return output
}
