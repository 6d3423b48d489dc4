import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import type { GenerateEvent } from '../../sdk/client/client-types.ts'
import { GREEDY, type SamplingParams } from '../../sdk/core/sampling/params.ts'
import { parseManifest } from '../../sdk/core/model/parse-manifest.ts'
import type { LocalChain } from '../../sdk/local/local-chain.ts'
import { openChain, openModel } from '../../sdk/index.node.ts'
import { openAsker, type Asker } from '../support/asker.ts'
import { openDoor, type Door } from '../support/door.ts'
import { goldenOf } from '../support/golden.ts'
import { createLetterTokenizer } from '../support/letter-tokenizer.ts'
import { startNodeRing, type NodeRing } from '../support/node-ring.ts'

const MODEL = 'crowdtalk-0.3m'
/** What PyTorch makes of the unsplit model. */
const golden = goldenOf(MODEL).longest
const SAMPLED: SamplingParams = {
  ...GREEDY,
  temperature: 0.9,
  topP: 0.95,
  repetitionPenalty: 1.2,
  frequencyPenalty: 0.4,
  seed: 11,
}
/** Tokens after which an answer is interrupted. */
const AT = 5

describe('two real stages, and an asker behind a line that can be cut', () => {
  let ring: NodeRing
  let door: Door
  let asker: Asker
  let unsplit: LocalChain
  beforeAll(async () => {
    ring = await startNodeRing(2)
    door = await openDoor(ring.started.port)
    const manifest = await fetch(`${ring.origin}/models/${MODEL}/manifest.json`)
    asker = await openAsker({
      url: `http://127.0.0.1:${door.port}`,
      secret: ring.started.secret ?? null,
      manifest: parseManifest(await manifest.json()),
      tokenizer: createLetterTokenizer(),
    })
    unsplit = await openChain(await openModel(MODEL, ring.dataDir), 1)
  })
  afterEach(() => ring.complete())
  afterAll(async () => {
    asker.close()
    await door.close()
    await unsplit.close()
    await ring.close()
  })

  const newest = () => [...ring.host.service().state().requests.values()].at(-1)

  /** Reads an answer, and disturbs it once AT more tokens are there, so many times. */
  async function answer(
    sampling: SamplingParams,
    disturb: () => void,
    times = 1,
  ): Promise<{ ids: number[]; resumedAt: number[]; events: GenerateEvent[] }> {
    const { promptIds } = golden
    const ids: number[] = []
    const resumedAt: number[] = []
    const events: GenerateEvent[] = []
    const request = { promptIds, maxTokens: golden.ids.length, sampling }
    for await (const event of asker.client.generate(request)) {
      events.push(event)
      if (event.kind === 'interrupted') door.unblock()
      if (event.kind === 'resumed') resumedAt.push(ids.length)
      if (event.kind !== 'delta' || event.chosen === undefined) continue
      ids.push(event.token)
      if (ids.length % AT === 0 && ids.length <= AT * times) disturb()
    }
    return { ids, resumedAt, events }
  }

  test('RS1 RS2 RS4 the line breaks: the same text goes on, and each stage has all rows but the last', async () => {
    const { ids, resumedAt, events } = await answer(GREEDY, () => door.drop())
    expect(ids).toEqual(golden.ids)
    expect(resumedAt).toHaveLength(1)
    expect(events.at(-1)).toMatchObject({ kind: 'end', ids: golden.ids })
    const request = newest()
    const rows = golden.promptIds.length + (resumedAt[0] ?? 0) - 1
    expect(request).toMatchObject({ resumed: true, epoch: 2, valid: [rows, rows] })
    expect(request?.ready.map(({ cached }) => cached)).toEqual([rows, rows])
  })

  test('RS2 sampled with penalties it is the text of the unsplit model too, however often the line breaks', async () => {
    const { promptIds: prompt } = golden
    const maxTokens = golden.ids.length
    const expected = await unsplit.generate({ prompt, maxTokens, sampling: SAMPLED })
    const { ids, resumedAt } = await answer(SAMPLED, () => door.drop(), 3)
    expect(ids).toEqual(expected.ids)
    expect(resumedAt).toHaveLength(3)
  })

  test('RS1 RS2 RS4 the line goes dead in silence, and the answer comes to its end unheard: it is said again', async () => {
    const { ids, resumedAt } = await answer(GREEDY, () => door.block())
    expect(ids).toEqual(golden.ids)
    const rows = golden.promptIds.length + (resumedAt[0] ?? 0) - 1
    expect(newest()).toMatchObject({ resumed: true, valid: [rows, rows] })
    const [before] = [...ring.host.service().state().requests.values()].slice(-2)
    expect(before).toMatchObject({ phase: 'done', answer: { length: golden.ids.length } })
  })

  test.each([
    ['greedy', GREEDY],
    ['sampled', SAMPLED],
  ])('RS2 RS3 RS4 the host is started anew: the same text goes on, %s', async (_, sampling) => {
    const { promptIds: prompt } = golden
    const expected = await unsplit.generate({ prompt, maxTokens: golden.ids.length, sampling })
    const restarts: Promise<void>[] = []
    const { ids, resumedAt } = await answer(sampling, () => {
      restarts.push(ring.restartHost())
    })
    await Promise.all(restarts)
    expect(ids).toEqual(expected.ids)
    if (sampling === GREEDY) expect(ids).toEqual(golden.ids)
    expect(resumedAt).toHaveLength(1)
    expect(newest()).toMatchObject({ resumed: true, epoch: 1, valid: [0, 0] })
  })
})
