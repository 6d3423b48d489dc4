import { describe, expect, it } from 'vitest'
import { describeStageRunnerContract } from '../../../test/contracts/stage-runner.contract.ts'
import type { CrowdError } from '../../core/errors.ts'
import type { SessionId } from '../../core/ids.ts'
import type { NodeOrtOptions } from '../ort.node.ts'
import type { StageRunner } from '../stage-runner.ts'
import { createTinyModel } from '../tiny-model.ts'
import { createNodeThreadRunner, type NodeThreadDeps } from './proxy.node.ts'

/** The thread's source, since the tests need no build. */
const script = new URL('../../../test/support/stage-thread.mjs', import.meta.url)
const model = createTinyModel({ layerCount: 3 })

const makeRunner = (options: NodeOrtOptions = {}, deps: NodeThreadDeps = {}): StageRunner =>
  createNodeThreadRunner({ threads: 1, ...options }, { script, ...deps })

describeStageRunnerContract('onnxruntime-node in a thread', {
  makeRunner: () => makeRunner(),
  model,
  tolerance: 1e-4,
})

describe('the compute thread of a Node worker', () => {
  it('leaves this thread free while it computes', async () => {
    const runner = makeRunner()
    await runner.start()
    await load(runner)
    let beats = 0
    const pulse = setInterval(() => (beats += 1), 1)
    const ids = Int32Array.from({ length: 500 }, (_, index) => index % 90)
    const output = await runner.run({
      session: 1 as SessionId,
      position: 0,
      input: { kind: 'tokens', ids },
      sample: null,
    })
    clearInterval(pulse)
    await runner.close()
    // Blocked, it could not have beaten even once.
    expect(output.computeMs).toBeGreaterThan(5)
    expect(beats).toBeGreaterThan(1)
  })

  it('says why a script that cannot run did not start, and is dead until the next start', async () => {
    const killed: CrowdError[] = []
    const runner = makeRunner(
      {},
      {
        script: new URL('data:text/javascript,throw new Error("no such luck")'),
        onKilled: (error) => killed.push(error),
      },
    )
    await expect(runner.start()).rejects.toMatchObject({
      code: 'stage-failed',
      message: expect.stringContaining('no such luck') as unknown,
    })
    expect(killed).toHaveLength(1)
    await runner.close()
  })

  it('comes back after its thread ended in the middle, and wants its blocks again', async () => {
    const killed: CrowdError[] = []
    const runner = makeRunner({}, { onKilled: (error) => killed.push(error), script: MORTAL })
    await runner.start()
    const wanted = await load(runner)
    const step = {
      session: 1 as SessionId,
      position: 0,
      input: { kind: 'tokens', ids: Int32Array.of(66) },
      sample: null,
    } as const
    await expect(runner.run(step)).rejects.toMatchObject({ code: 'stage-failed' })
    expect(killed.map(({ message }) => message).join()).toContain('ended with code 9')
    await runner.start()
    expect(await load(runner)).toEqual(wanted)
    await expect(
      runner.run({ ...step, input: { kind: 'tokens', ids: Int32Array.of(5) } }),
    ).resolves.toMatchObject({ kind: 'nothing' })
    await runner.close()
  })

  it('tells that its thread ended while no call waited, and can be started anew from there', async () => {
    const runner = makeRunner({}, { script: SHORT_LIVED })
    const lost = new Promise<CrowdError>((resolve) => runner.onLost?.(resolve))
    await runner.start()
    await runner.release(66 as SessionId)
    expect((await lost).message).toContain('ended with code 7')
    await expect(runner.start()).resolves.toMatchObject({ provider: 'cpu' })
    await runner.close()
  })
})

/** The thread of the tests, which ends itself some time after session 66 was released. */
const SHORT_LIVED = new URL(
  `data:text/javascript,${encodeURIComponent(`
    import { parentPort } from 'node:worker_threads'
    await import(${JSON.stringify(script.href)})
    parentPort.on('message', ({ kind, session }) => {
      if (kind === 'release' && session === 66) setTimeout(() => process.exit(7), 100)
    })
  `)}`,
)

/** The thread of the tests, which ends itself when token 66 comes. */
const MORTAL = new URL(
  `data:text/javascript,${encodeURIComponent(`
    import { parentPort } from 'node:worker_threads'
    await import(${JSON.stringify(script.href)})
    parentPort.on('message', ({ kind, step }) => {
      if (kind === 'run' && step.input.ids?.[0] === 66) process.exit(9)
    })
  `)}`,
)

async function load(runner: StageRunner): Promise<number[]> {
  const wanted = await runner.setStage(model.manifest, { start: 0, end: 5 })
  for (const block of wanted) await runner.loadBlock(block, await model.blockBytes(block))
  return wanted
}
