import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { SessionId } from '../../sdk/core/ids.ts'
import { SESSIONS_PER_STAGE } from '../../sdk/core/limits.ts'
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

const SAMPLE = { params: GREEDY, history: new Int32Array(0), promptLength: 0 }
const PROMPT = [5, 9, 2, 77, 31, 4, 60, 18, 23, 41, 8]

/** What every StageRunner does, the fake one included. */
export function describeStageRunnerContract(
  name: string,
  options: StageRunnerContractOptions,
): void {
  const { makeRunner, model, tolerance, startLimitMs = 60_000 } = options
  const { manifest } = model
  const { hiddenSize, layerCount, contextLength } = manifest
  const whole: BlockRange = { start: 0, end: layerCount + 2 }
  let nextSession = 1

  const newSession = (): SessionId => nextSession++ as SessionId

  async function load(runner: StageRunner, range: BlockRange): Promise<number[]> {
    const wanted = await runner.setStage(manifest, range)
    for (const block of wanted) await runner.loadBlock(block, await model.blockBytes(block))
    return wanted
  }

  function tokens(session: SessionId, position: number, ids: readonly number[]): StageStep {
    return {
      session,
      position,
      input: { kind: 'tokens', ids: Int32Array.from(ids) },
      sample: SAMPLE,
    }
  }

  function hidden(session: SessionId, position: number, data: Float32Array): StageStep {
    return { session, position, input: { kind: 'hidden', data }, sample: SAMPLE }
  }

  const failing = (code: string) => expect.objectContaining({ code }) as unknown

  /** Feeds chunks, then goes on greedily; returns what was chosen. */
  async function generate(
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

  function expectSame(actual: readonly SampledToken[], expected: readonly SampledToken[]): void {
    expect(actual.map(({ token }) => token)).toEqual(expected.map(({ token }) => token))
    actual.forEach(({ logprob }, i) => {
      expect(Math.abs(logprob - (expected[i]?.logprob ?? NaN))).toBeLessThanOrEqual(tolerance)
    })
  }

  describe(`${name} keeps the StageRunner contract`, () => {
    const others: StageRunner[] = []
    let runner: StageRunner

    /** A runner of its own for a test, with nothing loaded. Started once: real ones take their time. */
    async function another(index = 0): Promise<StageRunner> {
      const other = (others[index] ??= makeRunner())
      await other.start()
      await other.setStage({ ...manifest, revision: 'nothing' }, { start: 0, end: 1 })
      return other
    }

    const run = (request: StageStep): Promise<StageOutput> => runner.run(request)

    beforeAll(async () => {
      runner = makeRunner()
      await runner.start()
      await load(runner, whole)
    }, startLimitMs)

    afterAll(async () => {
      await Promise.all([runner, ...others].map((made) => made.close()))
    })

    it(
      'split equals whole: the same tokens through any chain',
      async () => {
        const expected = await generate(run, newSession(), { chunks: [PROMPT], count: 6 })
        const chain = [await another(0), await another(1), runner]
        const cuts = [0, 2, layerCount + 1, layerCount + 2]
        for (const [i, stage] of chain.entries()) {
          await load(stage, { start: cuts[i] ?? 0, end: cuts[i + 1] ?? 0 })
        }
        const through = async (request: StageStep): Promise<StageOutput> => {
          let input = request.input
          let output: StageOutput | null = null
          for (const stage of chain) {
            output = await stage.run({ ...request, input })
            if (output.kind === 'hidden') input = output
          }
          if (output === null) throw new Error('the chain is empty')
          return output
        }
        const chunks = [PROMPT.slice(0, 4), PROMPT.slice(4)]
        expectSame(await generate(through, newSession(), { chunks, count: 6 }), expected)
        await load(runner, whole)
      },
      startLimitMs,
    )

    it('cutting a prompt into chunks changes nothing', async () => {
      const session = newSession()
      const expected = await generate(run, session, { chunks: [PROMPT], count: 3 })
      for (const cut of [1, 6, 10]) {
        const chunks = [PROMPT.slice(0, cut), PROMPT.slice(cut)]
        expectSame(await generate(run, session, { chunks, count: 3 }), expected)
      }
      await runner.release(session)
    })

    it("a frame's position is the truth: earlier ones cut the cache", async () => {
      const [session, fresh] = [newSession(), newSession()]
      const other = [...PROMPT.slice(0, 4), 50, 51]
      const expected = await generate(run, fresh, { chunks: [other], count: 3 })
      await generate(run, session, { chunks: [PROMPT], count: 3 })
      expectSame([sampledOf(await run(tokens(session, 4, [50, 51])))], expected.slice(0, 1))
      await runner.release(session)
      await runner.release(fresh)
    })

    it('grows its caches without losing a row', async () => {
      const [session, chunked] = [newSession(), newSession()]
      const long = Array.from({ length: 290 }, (_, i) => (i * 37 + 11) % manifest.vocabSize)
      const expected = await generate(run, session, { chunks: [long], count: 2 })
      const chunks = [long.slice(0, 250), long.slice(250, 260), long.slice(260)]
      expectSame(await generate(run, chunked, { chunks, count: 2 }), expected)
      await runner.release(session)
      await runner.release(chunked)
    })

    it('keeps sessions apart', async () => {
      const [a, b] = [newSession(), newSession()]
      const reverse = PROMPT.toReversed()
      const alone = await generate(run, a, { chunks: [PROMPT], count: 4 })
      const aloneB = await generate(run, b, { chunks: [reverse], count: 4 })
      const [together, togetherB] = await Promise.all([
        generate(run, a, { chunks: [PROMPT], count: 4 }),
        generate(run, b, { chunks: [reverse], count: 4 }),
      ])
      expectSame(together, alone)
      expectSame(togetherB, aloneB)
      await runner.release(a)
      await runner.release(b)
    })

    it('queues overlapping calls in order, and a failed one does not disturb the others', async () => {
      const [session, fresh] = [newSession(), newSession()]
      const expected = await generate(run, fresh, { chunks: [PROMPT], count: 1 })
      const calls = await Promise.allSettled([
        run({ ...tokens(session, 0, PROMPT.slice(0, 5)), sample: null }),
        run(tokens(session, 99, [1])),
        run(tokens(session, 5, [manifest.vocabSize])),
        run(tokens(session, 5, PROMPT.slice(5))),
        run(hidden(session, 0, new Float32Array(hiddenSize))),
      ])
      expect(calls.map(({ status }) => status)).toEqual([
        'fulfilled',
        'rejected',
        'rejected',
        'fulfilled',
        'rejected',
      ])
      const fourth = calls[3]
      if (fourth.status !== 'fulfilled') throw new Error('checked above')
      expectSame([sampledOf(fourth.value)], expected)
      await runner.release(session)
      await runner.release(fresh)
    })

    it('refuses a position beyond the cache, also after a release', async () => {
      const session = newSession()
      await expect(run(tokens(session, 1, [1]))).rejects.toEqual(failing('stage-failed'))
      await run(tokens(session, 0, [1, 2, 3]))
      await expect(run(tokens(session, 4, [1]))).rejects.toEqual(failing('stage-failed'))
      await runner.release(session)
      await expect(run(tokens(session, 3, [1]))).rejects.toEqual(failing('stage-failed'))
      await runner.release(session)
    })

    it('keeps a bounded number of sessions; a release makes room', async () => {
      // A new range drops every session; the blocks that stay are not asked for again.
      expect(await load(runner, { start: 0, end: 1 })).toEqual([])
      expect((await load(runner, whole)).length).toBe(layerCount + 1)
      const all = Array.from({ length: SESSIONS_PER_STAGE }, newSession)
      for (const session of all) await run(tokens(session, 0, [3]))
      const extra = newSession()
      await expect(run(tokens(extra, 0, [3]))).rejects.toEqual(failing('too-many-requests'))
      await runner.release(all[0] ?? extra)
      await expect(run(tokens(extra, 0, [3]))).resolves.toMatchObject({ kind: 'token' })
      for (const session of [...all, extra]) await runner.release(session)
      await runner.release(newSession())
    })

    it('an empty range frees everything; the blocks are wanted anew afterwards', async () => {
      expect(await runner.setStage(manifest, { start: 0, end: 0 })).toEqual([])
      await expect(runner.run(tokens(newSession(), 0, PROMPT))).rejects.toEqual(
        failing('stage-failed'),
      )
      expect(await load(runner, whole)).toHaveLength(layerCount + 2)
    })

    it('refuses what is beyond the context, with the numbers', async () => {
      const session = newSession()
      const long = new Array<number>(contextLength + 1).fill(1)
      await expect(run(tokens(session, 0, long))).rejects.toMatchObject({
        code: 'prompt-too-long',
        message: expect.stringContaining(String(contextLength)) as unknown,
      })
      await runner.release(session)
    })

    it('refuses ids and shapes that do not fit', async () => {
      const session = newSession()
      for (const ids of [[], [-1], [manifest.vocabSize]]) {
        await expect(run(tokens(session, 0, ids))).rejects.toEqual(failing('bad-frame'))
      }
      for (const position of [-1, 0.5, NaN]) {
        await expect(run(tokens(session, position, [1]))).rejects.toEqual(failing('bad-frame'))
      }
      await runner.release(session)
    })

    it(
      'in the middle of a chain: takes hidden rows only, and refuses broken ones',
      async () => {
        const middle = await another()
        await load(middle, { start: 1, end: 3 })
        const session = newSession()
        const good = new Float32Array(2 * hiddenSize).fill(1)
        const first = await middle.run(hidden(session, 0, good.slice()))
        expect(first).toMatchObject({ kind: 'hidden' })
        expect(first.kind === 'hidden' && first.data.length).toBe(2 * hiddenSize)
        for (const bad of [NaN, Infinity, -Infinity]) {
          const data = good.slice()
          data[hiddenSize + 3] = bad
          await expect(middle.run(hidden(session, 2, data))).rejects.toEqual(failing('non-finite'))
        }
        const odd = new Float32Array(hiddenSize + 1)
        await expect(middle.run(hidden(session, 2, odd))).rejects.toEqual(failing('bad-frame'))
        await expect(middle.run(hidden(session, 2, new Float32Array(0)))).rejects.toEqual(
          failing('bad-frame'),
        )
        await expect(middle.run(tokens(session, 2, [1]))).rejects.toEqual(failing('bad-frame'))
        await expect(middle.run(hidden(session, 2, good.slice()))).resolves.toMatchObject({
          kind: 'hidden',
        })
      },
      startLimitMs,
    )

    it(
      'asks for the blocks that are missing, and only them',
      async () => {
        const moving = await another()
        expect(await load(moving, { start: 1, end: 3 })).toEqual([1, 2])
        expect(await moving.setStage(manifest, { start: 1, end: 3 })).toEqual([])
        expect(await moving.setStage(manifest, { start: 2, end: 4 })).toEqual([3])
        const session = newSession()
        const row = (): Float32Array => new Float32Array(hiddenSize).fill(1)
        await expect(moving.run(hidden(session, 0, row()))).rejects.toEqual(failing('stage-failed'))
        await expect(moving.loadBlock(1, await model.blockBytes(1))).rejects.toEqual(
          failing('bad-request'),
        )
        await moving.loadBlock(3, await model.blockBytes(3))
        await expect(moving.run(hidden(session, 0, row()))).resolves.toMatchObject({
          kind: 'hidden',
        })
        await expect(moving.setStage(manifest, { start: 3, end: 2 })).rejects.toEqual(
          failing('bad-request'),
        )
        const newModel = { ...manifest, revision: 'new' }
        expect(await moving.setStage(newModel, { start: 2, end: 4 })).toEqual([2, 3])
      },
      startLimitMs,
    )

    it(
      'refuses bytes of the wrong length and stays usable',
      async () => {
        const stage = await another()
        await stage.setStage(manifest, { start: 1, end: 2 })
        const { graph, data } = await model.blockBytes(1)
        await expect(
          stage.loadBlock(1, { graph: graph?.slice() ?? null, data: data.slice(64) }),
        ).rejects.toEqual(failing('model-invalid'))
        await stage.loadBlock(1, { graph, data })
        await expect(
          stage.run(hidden(newSession(), 0, new Float32Array(hiddenSize).fill(1))),
        ).resolves.toMatchObject({ kind: 'hidden' })
      },
      startLimitMs,
    )

    it(
      'closes once and for all',
      async () => {
        const closing = await another()
        await load(closing, { start: 0, end: 1 })
        await closing.close()
        await closing.close()
        await expect(closing.run(tokens(newSession(), 0, [1]))).rejects.toEqual(
          failing('stage-failed'),
        )
        await closing.release(newSession())
      },
      startLimitMs,
    )
  })
}

function sampledOf(output: StageOutput): SampledToken {
  if (output.kind !== 'token') throw new Error(`expected a token, got ${output.kind}`)
  return output.sampled
}
