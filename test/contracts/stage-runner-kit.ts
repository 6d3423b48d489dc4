import { expect } from 'vitest'
import type { SessionId } from '../../sdk/core/ids.ts'
import type { BlockRange } from '../../sdk/core/model/block-range.ts'
import { GREEDY, type SampledToken } from '../../sdk/core/sampling/params.ts'
import type { StageOutput, StageRunner, StageStep } from '../../sdk/runtime/stage-runner.ts'
import type { TinyModel } from '../../sdk/runtime/tiny-model.ts'

export type StageRunnerContractOptions = {
  readonly makeRunner: () => StageRunner
  /** At least three layers, and a context of at least 300. */
  readonly model: TinyModel
  /** How far numbers may be apart between differently cut runs; 0 where arithmetic is exact. */
  readonly tolerance: number
  readonly startLimitMs?: number
}

export const PROMPT = [5, 9, 2, 77, 31, 4, 60, 18, 23, 41, 8]

const SAMPLE = { params: GREEDY, history: new Int32Array(0), promptLength: 0 }

/** What the parts of the contract share: runners, and steps for them. */
export type RunnerKit = ReturnType<typeof createRunnerKit>

export function createRunnerKit(options: StageRunnerContractOptions) {
  const { makeRunner, model, tolerance, startLimitMs = 60_000 } = options
  const { manifest } = model
  const whole: BlockRange = { start: 0, end: manifest.layerCount + 2 }
  const runner = makeRunner()
  let other: StageRunner | null = null
  let nextSession = 1

  async function load(target: StageRunner, range: BlockRange): Promise<number[]> {
    const wanted = await target.setStage(manifest, range)
    for (const block of wanted) await target.loadBlock(block, await model.blockBytes(block))
    return wanted
  }

  return {
    ...{ model, manifest, whole, startLimitMs },
    /** Holds the whole model. */
    runner,
    load,
    async open(): Promise<void> {
      await runner.start()
      await load(runner, whole)
    },
    async close(): Promise<void> {
      await Promise.all([runner.close(), other?.close()])
    },
    run: (request: StageStep): Promise<StageOutput> => runner.run(request),

    /** A runner of its own for a test, with nothing loaded. Started once: real ones take their time. */
    async another(): Promise<StageRunner> {
      other ??= makeRunner()
      await other.start()
      await other.setStage({ ...manifest, revision: 'nothing' }, { start: 0, end: 1 })
      return other
    },

    // Casts: numbers that only a test counts are ids without a parser.
    newSession: (): SessionId => nextSession++ as SessionId,

    expectSame(actual: readonly SampledToken[], expected: readonly SampledToken[]): void {
      expect(actual.map(({ token }) => token)).toEqual(expected.map(({ token }) => token))
      actual.forEach(({ logprob }, i) => {
        expect(Math.abs(logprob - (expected[i]?.logprob ?? NaN))).toBeLessThanOrEqual(tolerance)
      })
    },
  }
}

export function tokens(session: SessionId, position: number, ids: readonly number[]): StageStep {
  return { session, position, input: { kind: 'tokens', ids: Int32Array.from(ids) }, sample: SAMPLE }
}

export function hidden(session: SessionId, position: number, data: Float32Array): StageStep {
  return { session, position, input: { kind: 'hidden', data }, sample: SAMPLE }
}

export const failing = (code: string) => expect.objectContaining({ code }) as unknown

/** Feeds chunks, then goes on greedily; returns what was chosen. */
export async function generate(
  step: (request: StageStep) => Promise<StageOutput>,
  session: SessionId,
  plan: { readonly chunks: readonly (readonly number[])[]; readonly count: number },
): Promise<SampledToken[]> {
  let position = 0
  const chosen: SampledToken[] = []
  for (const [i, chunk] of plan.chunks.entries()) {
    const isLast = i === plan.chunks.length - 1
    const request = tokens(session, position, chunk)
    const output = await step(isLast ? request : { ...request, sample: null })
    position += chunk.length
    if (isLast) chosen.push(sampledOf(output))
    else expect(output.kind).toBe('nothing')
  }
  while (chosen.length < plan.count) {
    const last = chosen[chosen.length - 1]
    chosen.push(sampledOf(await step(tokens(session, position++, [last?.token ?? 0]))))
  }
  return chosen
}

export function sampledOf(output: StageOutput): SampledToken {
  if (output.kind !== 'token') throw new Error(`expected a token, got ${output.kind}`)
  return output.sampled
}
