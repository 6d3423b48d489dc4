import { afterAll, beforeAll, expect, test } from 'vitest'
import type { PeerId } from '../../sdk/core/ids.ts'
import type { Asker } from '../support/asker.ts'
import { eventually } from '../support/eventually.ts'
import { goldenOf } from '../support/golden.ts'
import { openRingAsker, startNodeRing, type NodeRing } from '../support/node-ring.ts'

const MODEL = 'crowdtalk-0.3m'
/** What PyTorch makes of the unsplit model; long enough to be moved in the middle. */
const cases = goldenOf(MODEL).cases.filter(({ ids }) => ids.length >= 64)
const STAGES = 3

let ring: NodeRing
let asker: Asker
beforeAll(async () => {
  ring = await startNodeRing(2 * STAGES, { stages: String(STAGES) })
  asker = await openRingAsker(ring)
})
afterAll(async () => {
  asker.close()
  await ring.close()
})

const newest = () => [...ring.host.service().state().requests.values()].at(-1)

function workerOf(peer: PeerId | undefined) {
  const found = ring.workers.find((worker) => worker.snapshot().peer === peer)
  if (found === undefined) throw new Error(`no worker is ${peer}`)
  return found
}

/** Every block has two holders that are ready. */
async function restored(): Promise<void> {
  await eventually('two holders of each block', 30_000, () => {
    const { complete, peers } = ring.host.service().snapshot()
    return complete && peers.filter(({ state }) => state === 'ready').length === 2 * STAGES
  })
}

test.each([0, 1, 2])(
  'RE11 RE12 stage %i of three real ones is paused in the middle of an answer: the same text, and it is free at once',
  async (stage) => {
    const { promptIds, ids } = cases[stage] ?? { promptIds: [], ids: [] }
    await restored()
    const got: number[] = []
    let paused: PeerId | undefined
    let freed: Promise<unknown> = Promise.resolve()
    for await (const event of asker.client.generate({ promptIds, maxTokens: ids.length })) {
      if (event.kind !== 'delta') continue
      got.push(event.token)
      if (got.length !== 5) continue
      paused = newest()?.stages[stage]?.peer
      const leaving = workerOf(paused)
      // Or the answer would be over before the links are made.
      const goOn = ring.hold()
      await leaving.pause()
      await eventually('another route', 10_000, () => newest()?.epoch === 2)
      goOn()
      freed = eventually('a device without sessions', 1_000, () => {
        const { sessions, range } = leaving.snapshot()
        return sessions === 0 && range === null
      })
    }
    await freed
    expect(got).toEqual(ids)
    expect(newest()).toMatchObject({ epoch: 2, repairs: 0 })
    const after = newest()?.stages.map(({ peer }) => peer)
    expect(after).toHaveLength(STAGES)
    expect(after).not.toContain(paused)
    await workerOf(paused).resume()
  },
)
