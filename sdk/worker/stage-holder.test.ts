import { expect, test } from 'vitest'
import { CrowdError } from '../core/errors.ts'
import type { ModelId, PieceHash } from '../core/ids.ts'
import type { Block, Manifest, Piece } from '../core/model/manifest.ts'
import type { ClientMessageOf } from '../protocol/client-to-server.ts'
import type { ServerMessageOf } from '../protocol/server-to-client.ts'
import type { BlockBytes, StageRunner } from '../runtime/stage-runner.ts'
import type { ShardStore } from '../storage/shard-store.ts'
import type { FetchPieces } from './fetch-pieces.ts'
import { createStageHolder } from './stage-holder.ts'

const piece = (letter: string): Piece => ({ sha256: letter.repeat(64) as PieceHash, bytes: 4 })
const block = (kind: Block['kind'], graph: string | null, ...data: string[]): Block => ({
  kind,
  graph: graph === null ? null : piece(graph),
  data: data.map(piece),
  dataBytes: 4 * data.length,
  f32Bytes: 4 * data.length,
})
// The embedding and the head share piece "a"; layer 1 has two data pieces.
const manifest = {
  id: 'm' as ModelId,
  revision: 'r',
  layerCount: 2,
  blocks: [
    block('embedding', null, 'a'),
    block('layer', 'b', 'c', 'd'),
    block('layer', 'e', 'f'),
    block('head', '0', 'a'),
  ],
} as unknown as Manifest

function setUp() {
  const stored = new Map<PieceHash, Uint8Array>()
  const fetched: string[] = []
  const loaded = new Map<number, BlockBytes>()
  const reports: ClientMessageOf<'stage-state'>[] = []
  const kit = {
    stored,
    fetched,
    loaded,
    reports,
    /** Rejects the next loads of this block. */
    refuse: null as number | null,
    gate: null as Promise<void> | null,
    /** What the warm-up finds, if anything is wrong. */
    fault: null as CrowdError | null,
    measured: [] as number[],
    onLoad: (() => undefined) as () => unknown,
    /** How often it said that more is stored. */
    storings: 0,
    /** How often it said that no caches are there. */
    emptied: 0,
  }
  const fetchPieces: FetchPieces = async (pieces, { signal, onProgress }) => {
    if (kit.gate !== null) await kit.gate
    signal.throwIfAborted()
    let done = 0
    for (const { sha256, bytes } of pieces) {
      if (!stored.has(sha256)) {
        fetched.push(sha256[0] ?? '')
        stored.set(sha256, new Uint8Array(bytes).fill(sha256.charCodeAt(0)))
      }
      done += bytes
      onProgress(done, fetched.length * 4, fetched.length)
    }
  }
  const runner = {
    start: () => Promise.resolve({ provider: 'wasm', threads: 1, notes: [] }),
    setStage: (_manifest: Manifest, range: { start: number; end: number }) => {
      for (const index of loaded.keys())
        if (index < range.start || index >= range.end) loaded.delete(index)
      return Promise.resolve(
        Array.from({ length: range.end - range.start }, (_, offset) => range.start + offset).filter(
          (index) => !loaded.has(index),
        ),
      )
    },
    loadBlock: (index: number, bytes: BlockBytes) => {
      if (kit.refuse === index) return Promise.reject(new CrowdError('out-of-memory', 'no room'))
      kit.onLoad()
      loaded.set(index, bytes)
      return Promise.resolve()
    },
    run: () =>
      kit.fault === null
        ? Promise.resolve({ kind: 'nothing', computeMs: 7 })
        : Promise.reject(kit.fault),
    release: () => Promise.resolve(),
  } as unknown as StageRunner
  const store = {
    read: (hash: PieceHash) => Promise.resolve(stored.get(hash) ?? null),
  } as unknown as ShardStore
  const holder = createStageHolder({
    runner,
    store,
    fetchPieces,
    report: (message) => reports.push(message),
    onChange: () => undefined,
    onMeasured: (stepMs) => kit.measured.push(stepMs),
    onStored() {
      kit.storings += 1
    },
    onEmpty() {
      kit.emptied += 1
    },
  })
  return { ...kit, kit, holder }
}

const order = (
  assignment: number,
  range: { start: number; end: number } | null,
): ServerMessageOf<'assign'> => ({
  kind: 'assign',
  assignment,
  model: manifest.id,
  revision: 'r',
  range,
  reason: 'test',
})

test('fetches the pieces of its own range only, loads block by block, and says so', async () => {
  const { holder, fetched, loaded, reports } = setUp()
  await holder.assign(order(1, { start: 0, end: 2 }), manifest)
  expect(fetched).toEqual(['a', 'b', 'c', 'd'])
  expect([...loaded.keys()]).toEqual([0, 1])
  expect([...(loaded.get(1)?.data ?? [])]).toEqual([99, 99, 99, 99, 100, 100, 100, 100])
  expect(reports.at(-1)).toMatchObject({
    assignment: 1,
    state: 'ready',
    doneBytes: 16,
    totalBytes: 16,
    fetchedBytes: 16,
    peerBytes: 4,
  })
})

test('a stage computes before it is ready, so that its speed is known', async () => {
  const { holder, kit, reports } = setUp()
  await holder.assign(order(1, { start: 1, end: 3 }), manifest)
  expect(kit.measured).toEqual([7])
  await holder.assign(order(2, null), manifest)
  expect(kit.measured).toEqual([7])
  kit.fault = new CrowdError('non-finite', 'NaN came out')
  await holder.assign(order(3, { start: 1, end: 3 }), manifest)
  expect(reports.at(-1)).toMatchObject({ assignment: 3, state: 'failed' })
  expect(reports.at(-1)?.error).toMatchObject({ code: 'non-finite' })
  expect(reports.some(({ assignment, state }) => assignment === 3 && state === 'ready')).toBe(false)
  expect(kit.measured).toEqual([7])
})

test('a piece that two blocks share is fetched and counted once', async () => {
  const { holder, fetched, reports } = setUp()
  await holder.assign(order(1, { start: 0, end: 4 }), manifest)
  expect(fetched.filter((name) => name === 'a')).toHaveLength(1)
  expect(reports.at(-1)).toMatchObject({ totalBytes: 28 })
})

test('blocks of both the old and the new range are not loaded again', async () => {
  const { holder, fetched, loaded } = setUp()
  await holder.assign(order(1, { start: 1, end: 3 }), manifest)
  await holder.assign(order(2, { start: 2, end: 4 }), manifest)
  expect([...loaded.keys()]).toEqual([2, 3])
  expect(fetched).toEqual(['b', 'c', 'd', 'e', 'f', '0', 'a'])
})

test('a newer assignment replaces one that is still fetching; only the newer becomes ready', async () => {
  const { holder, kit, reports, loaded } = setUp()
  let open: () => void = () => undefined
  kit.gate = new Promise((resolve) => {
    open = resolve
  })
  const first = holder.assign(order(1, { start: 0, end: 2 }), manifest)
  const second = holder.assign(order(2, { start: 2, end: 3 }), manifest)
  open()
  await Promise.all([first, second])
  expect([...loaded.keys()]).toEqual([2])
  expect(
    reports.filter(({ state }) => state === 'ready').map(({ assignment }) => assignment),
  ).toEqual([2])
  expect(reports.some(({ state }) => state === 'failed')).toBe(false)
})

test('a piece that is damaged in the store is fetched again', async () => {
  const { holder, stored, fetched } = setUp()
  await holder.assign(order(1, { start: 2, end: 3 }), manifest)
  stored.delete(piece('f').sha256)
  await holder.assign(order(2, null), manifest)
  await holder.assign(order(3, { start: 2, end: 3 }), manifest)
  expect(fetched.filter((name) => name === 'f')).toHaveLength(2)
})

test('a load that fails names the layers, keeps the code and can be followed by a smaller one', async () => {
  const { holder, kit, reports } = setUp()
  kit.refuse = 2
  await holder.assign(order(1, { start: 1, end: 3 }), manifest)
  expect(reports.at(-1)).toMatchObject({
    state: 'failed',
    error: { code: 'out-of-memory', message: 'layers 1–2: no room' },
  })
  await holder.assign(order(2, { start: 1, end: 2 }), manifest)
  expect(reports.at(-1)).toMatchObject({ assignment: 2, state: 'ready' })
})

test('a device that is set aside after a failure goes on showing why', async () => {
  const { holder, kit } = setUp()
  kit.refuse = 2
  await holder.assign(order(1, { start: 1, end: 3 }), manifest)
  await holder.assign(order(2, null), manifest)
  expect(holder.held()).toMatchObject({
    range: null,
    state: 'ready',
    error: { code: 'out-of-memory' },
  })
})

test('what the runner lost is loaded again from the store; a whole stage is left alone', async () => {
  const { holder, loaded, fetched, reports } = setUp()
  await holder.assign(order(1, { start: 0, end: 2 }), manifest)
  expect(await holder.reload()).toBe(false)
  const before = fetched.length
  loaded.delete(1)
  expect(await holder.reload()).toBe(true)
  expect([...loaded.keys()]).toEqual([0, 1])
  expect(fetched).toHaveLength(before)
  expect(reports.slice(-2).map(({ state }) => state)).toEqual(['loading', 'ready'])
})

test('a stage that is ordered again as it is need not compute first: answers may go through it', async () => {
  const { holder, kit, reports } = setUp()
  await holder.assign(order(1, { start: 0, end: 2 }), manifest)
  kit.fault = new CrowdError('too-many-requests', 'no place for one more session')
  await holder.assign(order(2, { start: 0, end: 2 }), manifest)
  expect(reports.at(-1)).toMatchObject({ assignment: 2, state: 'ready' })
  expect(kit.measured).toEqual([7])
})

test('RE2 what is loaded anew has no caches; what is still loaded may have some', async () => {
  const { holder, kit, loaded } = setUp()
  await holder.assign(order(1, { start: 0, end: 2 }), manifest)
  expect(kit.emptied).toBe(1)
  await holder.assign(order(2, { start: 0, end: 2 }), manifest)
  expect(await holder.reload()).toBe(false)
  expect(kit.emptied).toBe(1)
  loaded.delete(1)
  await holder.reload()
  expect(kit.emptied).toBe(2)
  loaded.clear()
  await holder.assign(order(3, { start: 0, end: 2 }), manifest)
  expect(kit.emptied).toBe(3)
})

test('a runner that was lost and is not to be loaded again, or can not be, is told as a failure', async () => {
  const { holder, kit, loaded, reports } = setUp()
  const refusal = new CrowdError('out-of-memory', 'lost again')
  await holder.assign(order(1, { start: 0, end: 2 }), manifest)
  expect(await holder.reload(refusal)).toBe(false)
  loaded.clear()
  expect(await holder.reload(refusal)).toBe(true)
  expect([loaded.size, kit.emptied]).toEqual([0, 2])
  expect(reports.at(-1)).toMatchObject({ state: 'failed', error: { code: 'out-of-memory' } })
  await holder.assign(order(2, { start: 1, end: 2 }), manifest)
  loaded.clear()
  kit.refuse = 1
  expect(await holder.reload()).toBe(true)
  expect(reports.at(-1)).toMatchObject({ assignment: 2, state: 'failed' })
  expect(reports.at(-1)?.error).toMatchObject({ code: 'out-of-memory' })
})

test('another order while a lost runner is loaded again is no failure of the device', async () => {
  const { holder, kit, loaded } = setUp()
  await holder.assign(order(1, { start: 0, end: 2 }), manifest)
  loaded.clear()
  const orders: Promise<void>[] = []
  kit.onLoad = () => {
    if (orders.length === 0) orders.push(holder.assign(order(2, { start: 2, end: 3 }), manifest))
  }
  expect(await holder.reload()).toBe(false)
  await Promise.all(orders)
  expect(holder.held()).toMatchObject({ assignment: 2, state: 'ready' })
})

test('a spare holds nothing', async () => {
  const { holder, loaded } = setUp()
  await holder.assign(order(1, { start: 0, end: 2 }), manifest)
  await holder.assign(order(2, null), manifest)
  expect(loaded.size).toBe(0)
  expect(holder.held()).toMatchObject({ range: null, state: 'ready' })
})

test('a warm spare stores what it is told to keep, loads none of it, and holds it when it steps in', async () => {
  const { holder, kit, fetched, loaded, reports } = setUp()
  await holder.assign({ ...order(1, null), keep: { start: 1, end: 3 } }, manifest)
  expect(fetched).toEqual(['b', 'c', 'd', 'e', 'f'])
  expect(loaded.size).toBe(0)
  expect(kit.storings).toBe(1)
  expect(reports.some(({ state }) => state === 'failed')).toBe(false)
  await holder.assign(order(2, { start: 1, end: 3 }), manifest)
  expect(fetched).toHaveLength(5)
  expect([...loaded.keys()]).toEqual([1, 2])
})
