import { expect, it } from 'vitest'
import type { StageOutput, StageStep } from '../../sdk/runtime/stage-runner.ts'
import {
  failing,
  generate,
  hidden,
  PROMPT,
  sampledOf,
  tokens,
  type RunnerKit,
} from './stage-runner-kit.ts'

/** Steps, positions, sessions and what is refused of them. */
export function describeSteps(kit: RunnerKit): void {
  const { manifest, whole, runner, startLimitMs, load, run, another, newSession, expectSame } = kit
  const { hiddenSize, layerCount, contextLength } = manifest

  it(
    'split equals whole: the same tokens through any chain',
    async () => {
      const expected = await generate(run, newSession(), { chunks: [PROMPT], count: 6 })
      const chain = [await another(), runner]
      const cuts = [0, 2, layerCount + 2]
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
}
