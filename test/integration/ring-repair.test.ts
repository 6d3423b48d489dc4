import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { PeerId } from '../../sdk/core/ids.ts'
import type { Asker } from '../support/asker.ts'
import { eventually } from '../support/eventually.ts'
import { goldenOf } from '../support/golden.ts'
import { openRingAsker, startNodeRing, type NodeRing } from '../support/node-ring.ts'

const MODEL = 'crowdtalk-0.3m'
/** What PyTorch makes of the unsplit model. */
const cases = goldenOf(MODEL).cases.filter(({ ids }) => ids.length >= 27)

describe('two real stages, two holders of each', () => {
  let ring: NodeRing
  let asker: Asker
  beforeAll(async () => {
    ring = await startNodeRing(4, { stages: '2' })
    asker = await openRingAsker(ring)
  })
  afterAll(async () => {
    asker.close()
    await ring.close()
  })

  const newest = () => [...ring.host.service().state().requests.values()].at(-1)

  /** Greedy ids behind a prompt; `disturb` is called once five of them are there. */
  async function answer(
    promptIds: readonly number[],
    maxTokens: number,
    disturb: () => Promise<void> = () => Promise.resolve(),
  ): Promise<number[]> {
    const ids: number[] = []
    for await (const event of asker.client.generate({ promptIds, maxTokens })) {
      if (event.kind !== 'delta') continue
      ids.push(event.token)
      if (ids.length === 5) await disturb()
    }
    return ids
  }

  function workerOf(peer: PeerId | undefined) {
    const found = ring.workers.find((worker) => worker.snapshot().peer === peer)
    if (found === undefined) throw new Error(`no worker is ${peer}`)
    return found
  }

  /** As many ready devices as before. */
  async function restored(): Promise<void> {
    await ring.addWorker()
    await eventually('four ready devices', 30_000, () => {
      const { peers } = ring.host.service().snapshot()
      return peers.filter(({ state }) => state === 'ready').length === 4
    })
  }

  test.each([0, 1])('RE1 stage %i leaves in the middle: the same text goes on', async (stage) => {
    for (const { promptIds, ids } of cases.slice(stage * 2, stage * 2 + 2)) {
      const lost: PeerId[] = []
      const got = await answer(promptIds, ids.length, async () => {
        const peer = newest()?.stages[stage]?.peer
        if (peer !== undefined) lost.push(peer)
        await workerOf(peer).leave()
      })
      expect(got).toEqual(ids)
      expect(newest()?.repairs).toBe(1)
      expect(newest()?.stages.map(({ peer }) => peer)).not.toContain(lost[0])
      await restored()
    }
  })

  test('RE9 a question that begins with the text before goes on with its caches, and gets the same text', async () => {
    const { promptIds, ids } = goldenOf(MODEL).longest
    const turn = 8
    await answer(promptIds, turn)
    const former = newest()
    const got = await answer([...promptIds, ...ids.slice(0, turn)], ids.length - turn)
    expect(got).toEqual(ids.slice(turn))
    const known = newest()
    expect(known).toMatchObject({ session: former?.session, epoch: 2 })
    // All but the row of the last token, whose outcome is the first new one.
    const rows = promptIds.length + turn - 1
    expect(known?.valid).toEqual([rows, rows])
  })
})
