import { cp, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, describe, expect, test, vi } from 'vitest'
import { eventually } from '../support/eventually.ts'
import { goldenOf } from '../support/golden.ts'
import { startNodeRing, type NodeRing } from '../support/node-ring.ts'
import { eventsOf, readSse } from '../support/sse.ts'

const SMALL = 'crowdtalk-0.3m'
const LARGE = 'crowdtalk-2.6m'
const SWITCH_MS = 60_000
const CHATS = 2

let ring: NodeRing
beforeAll(async () => {
  ring = await startNodeRing(2)
})
afterAll(async () => {
  await ring.close()
})
afterEach(() => {
  vi.restoreAllMocks()
})

type Models = {
  served: string
  operator: boolean
  change: { model: string; phase: string } | null
  failure: { model: string; code: string; message: string } | null
  models: { name: string; served: boolean; layers: number | null; problem: string }[]
}

async function models(token = ring.started.adminToken): Promise<Models> {
  const response = await fetch(`${ring.origin}/api/models`, {
    headers: { authorization: `Bearer ${token}` },
  })
  // The host's own answer.
  return (await response.json()) as Models
}

function choose(model: string, token = ring.started.adminToken): Promise<Response> {
  return fetch(`${ring.origin}/api/admin/model`, {
    method: 'POST',
    headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
    body: JSON.stringify({ model }),
  })
}

/** Waits until a change is over, whatever became of it. */
async function settled(): Promise<Models> {
  const service = ring.host.service()
  await eventually('the end of the change', SWITCH_MS, () => service.state().change === null)
  return await models()
}

function ask(model: string, index = 0, over: Record<string, unknown> = {}): Promise<Response> {
  const golden = chatsOf(model)[index]
  return fetch(`${ring.origin}/v1/chat/completions`, {
    method: 'POST',
    headers: { authorization: `Bearer ${ring.started.secret ?? ''}` },
    body: JSON.stringify({
      model,
      messages: golden?.messages,
      temperature: 0,
      max_completion_tokens: golden?.ids.length,
      ...over,
    }),
  })
}

const chatsOf = (model: string) => goldenOf(model).cases.filter((one) => one.messages !== undefined)

/** The first conversations are answered as the unsplit model does. */
async function expectGolden(model: string): Promise<void> {
  for (const [index, { text }] of chatsOf(model).slice(0, CHATS).entries()) {
    const answer = await ask(model, index)
    expect(await answer.json()).toMatchObject({
      model,
      choices: [{ message: { content: text } }],
    })
  }
}

/** How many requests for pieces go out from now on. */
function countPieces(): () => number {
  const calls = vi.spyOn(globalThis, 'fetch').mock.calls
  return () =>
    calls.filter(([url]) => String(url instanceof Request ? url.url : url).includes('/pieces/'))
      .length
}

describe('a running host that changes its model', { timeout: 2 * SWITCH_MS }, () => {
  test('MO1 MO3 answers with each model’s own text, and fetches nothing twice', async () => {
    await expectGolden(SMALL)
    const fetchedOnce = countPieces()
    const first = await choose(LARGE)
    expect(first.status).toBe(202)
    expect(await first.json()).toMatchObject({ change: { model: LARGE } })
    expect(await settled()).toMatchObject({ served: LARGE, failure: null })
    await ring.complete()
    expect(fetchedOnce()).toBeGreaterThan(0)
    vi.restoreAllMocks()
    await expectGolden(LARGE)
    for (const worker of ring.workers)
      expect(worker.snapshot()).toMatchObject({ phase: 'serving', model: LARGE, layerCount: 6 })

    expect((await ask(SMALL)).status).toBe(404)
    const list = await fetch(`${ring.origin}/v1/models`)
    expect(await list.json()).toMatchObject({ data: [{ id: LARGE }] })
    const health = await fetch(`${ring.origin}/healthz`)
    expect(await health.json()).toMatchObject({ ok: true, model: LARGE })
    const metrics = await (await fetch(`${ring.origin}/metrics`)).text()
    expect(metrics).toMatch(/crowdinfer_model_info\{model="crowdtalk-2.6m"\} 1/)
    expect(metrics).not.toContain('model="crowdtalk-0.3m"')

    const fetched = countPieces()
    await choose(SMALL)
    expect((await settled()).served).toBe(SMALL)
    await expectGolden(SMALL)
    expect(fetched()).toBe(0)
    expect(ring.workers.map((worker) => worker.snapshot().fetchedBytes)).toEqual([0, 0])
  })

  test('MO5 an answer that runs meanwhile has the text of the model that was asked', async () => {
    const index = longest(SMALL)
    const golden = chatsOf(SMALL)[index]
    const response = await ask(SMALL, index, { stream: true })
    const stream = readSse(response)
    let blocks: string[] = []
    while (textOf(blocks) === '') blocks = [...blocks, (await stream.next()) ?? '']
    expect((await choose(LARGE)).status).toBe(202)
    expect(textOf([...blocks, ...(await stream.rest())])).toBe(golden?.text)
    expect((await settled()).served).toBe(LARGE)
    await expectGolden(LARGE)
  })

  test('a model that is damaged is not served; the one that is goes on, and the reason is told', async () => {
    const folder = join(ring.dataDir, 'models')
    await cp(join(folder, SMALL), join(folder, 'damaged'), { recursive: true })
    await writeFile(join(folder, 'damaged', 'manifest.json'), '{"format": 1}')
    await cp(join(folder, SMALL), join(folder, 'incomplete'), { recursive: true })
    await rm(join(folder, 'incomplete', 'pieces', goldenPiece()))
    // The list of a moment ago is told again.
    const known = await eventually('the new folders', SWITCH_MS, async () => {
      const list = (await models()).models
      return list.some(({ name }) => name === 'damaged') ? list : null
    })
    expect(known.find(({ name }) => name === 'damaged')?.problem).toMatch(/manifest.json/)
    expect(known.find(({ name }) => name === LARGE)).toMatchObject({ served: true, layers: 6 })
    for (const [name, code] of [
      ['damaged', 'model-invalid'],
      ['incomplete', 'model-invalid'],
    ] as const) {
      expect((await choose(name)).status).toBe(202)
      expect(await settled()).toMatchObject({ served: LARGE, failure: { model: name, code } })
    }
    expect((await models()).failure?.message).toMatch(/incomplete: the piece .* is missing/)
    // Whoever is not the operator hears nothing of the host's folders.
    const seen = await models(ring.started.secret ?? '')
    expect(seen).toMatchObject({ operator: false, failure: { code: 'model-invalid' } })
    expect(JSON.stringify(seen)).not.toContain('the piece')
    await expectGolden(LARGE)
  })

  test('only the operator may choose, and only what is known', async () => {
    for (const token of ['', 'x', ring.started.secret ?? ''])
      expect((await choose(SMALL, token)).status).toBe(401)
    expect((await models('x')).models).toBeUndefined()
    const unknown = await choose('../../etc')
    expect(unknown.status).toBe(404)
    expect(await unknown.json()).toMatchObject({ error: { code: 'model-not-found' } })
    expect(await models()).toMatchObject({ served: LARGE, change: null })
  })

  test('of two wishes at once the last one counts', async () => {
    await Promise.all([choose(LARGE), choose(SMALL)])
    await choose(LARGE)
    await choose(SMALL)
    expect(await settled()).toMatchObject({ served: SMALL, failure: null })
    await ring.complete()
    await expectGolden(SMALL)
  })
})

function textOf(blocks: readonly string[]): string {
  // Our own API wrote it.
  const chunks = eventsOf(blocks) as { choices: { delta: { content?: string } }[] }[]
  return chunks.map((chunk) => chunk.choices[0]?.delta.content ?? '').join('')
}

function longest(model: string): number {
  const lengths = chatsOf(model).map(({ ids }) => ids.length)
  return lengths.indexOf(Math.max(...lengths))
}

/** A piece of the small model. */
function goldenPiece(): string {
  const { manifest } = ring.started.model
  return manifest.blocks[1]?.data[0]?.sha256 ?? ''
}
