import { expect, it } from 'vitest'
import { SESSIONS_PER_STAGE } from '../../sdk/core/limits.ts'
import { failing, hidden, PROMPT, tokens, type RunnerKit } from './stage-runner-kit.ts'

/** Ranges, blocks and what is kept of them. */
export function describeBlocks(kit: RunnerKit): void {
  const { model, manifest, whole, runner, startLimitMs, load, run, another, newSession } = kit
  const { hiddenSize, layerCount } = manifest

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
}
