import { expect, test } from 'vitest'
import { createFakeStageRunner } from '../../test/support/fake-stage-runner.ts'
import { CrowdError } from '../core/errors.ts'
import { GREEDY } from '../core/sampling/params.ts'
import type { StageRunner } from '../runtime/stage-runner.ts'
import { createTinyModel } from '../runtime/tiny-model.ts'
import { openLocalChain } from './local-chain.ts'

const model = createTinyModel({ layerCount: 4, contextLength: 64 })
const PROMPT = Array.from({ length: 40 }, (_, index) => (index * 7 + 1) % 96)
const request = { prompt: PROMPT, maxTokens: 8, sampling: GREEDY }

function setUp(readBlock = (block: number) => model.blockBytes(block)) {
  const counts = { open: 0, sessions: 0 }
  const makeRunner = (): StageRunner => {
    const runner = createFakeStageRunner()
    const held = new Set<number>()
    let open = false
    return {
      ...runner,
      start() {
        counts.open += open ? 0 : 1
        open = true
        return runner.start()
      },
      run(step) {
        counts.sessions += held.has(step.session) ? 0 : 1
        held.add(step.session)
        return runner.run(step)
      },
      release(session) {
        counts.sessions -= held.delete(session) ? 1 : 0
        return runner.release(session)
      },
      close() {
        counts.open -= open ? 1 : 0
        open = false
        return runner.close()
      },
    }
  }
  const open = (stages: number) =>
    openLocalChain({ manifest: model.manifest, stages, makeRunner, readBlock })
  return { counts, open }
}

test('however many stages: the same tokens, and nothing is held afterwards', async () => {
  const { counts, open } = setUp()
  const answers: number[][] = []
  for (const stages of [1, 2, 4]) {
    const chain = await open(stages)
    expect(counts.open).toBe(stages)
    const { ids, reason, msPerStage } = await chain.generate(request)
    expect(msPerStage).toHaveLength(stages)
    expect(ids.length === request.maxTokens || reason === 'stop').toBe(true)
    answers.push(ids)
    expect(counts.sessions).toBe(0)
    await chain.close()
    expect(counts.open).toBe(0)
  }
  expect(answers[1]).toEqual(answers[0])
  expect(answers[2]).toEqual(answers[0])
})

test('a block that can not be read closes the stages that were opened', async () => {
  const { counts, open } = setUp((block) =>
    block === 3 ? Promise.reject(new CrowdError('piece-corrupt', 'no')) : model.blockBytes(block),
  )
  await expect(open(2)).rejects.toMatchObject({ code: 'piece-corrupt' })
  expect(counts.open).toBe(0)
})

test('more stages than layers are refused', async () => {
  await expect(setUp().open(5)).rejects.toMatchObject({ code: 'bad-option' })
})

test('an answer ends at a stop id, at the limit, and at the end of the context', async () => {
  const chain = await setUp().open(2)
  const free = await chain.generate(request)
  const [first = -1] = free.ids
  expect(await chain.generate({ ...request, stopIds: [first] })).toMatchObject({
    ids: [first],
    reason: 'stop',
  })
  expect((await chain.generate({ ...request, maxTokens: 1 })).reason).toBe('length')
  const prompt = PROMPT.slice(0, 3)
  const { ids, reason } = await chain.generate({ ...request, prompt, maxTokens: 1_000 })
  expect(reason === 'stop' || ids.length === 61).toBe(true)
  await chain.close()
})

test('what can not be answered is refused, with the numbers', async () => {
  const { counts, open } = setUp()
  const chain = await open(2)
  const prompt = new Array<number>(64).fill(1)
  await expect(chain.generate({ ...request, prompt })).rejects.toMatchObject({
    code: 'prompt-too-long',
    message: expect.stringMatching(/64 tokens .* 64/) as unknown,
  })
  await expect(chain.generate({ ...request, prompt: [] })).rejects.toMatchObject({
    code: 'bad-request',
  })
  const aborted = AbortSignal.abort(new CrowdError('aborted', 'no more'))
  await expect(chain.generate({ ...request, signal: aborted })).rejects.toMatchObject({
    code: 'aborted',
  })
  expect(counts.sessions).toBe(0)
  await chain.close()
})
