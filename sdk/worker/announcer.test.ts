import { expect, test } from 'vitest'
import type { ModelId } from '../core/ids.ts'
import type { Manifest } from '../core/model/manifest.ts'
import type { ClientMessage } from '../protocol/client-to-server.ts'
import { modelOf } from '../../test/support/host-fixtures.ts'
import { testWelcome } from '../../test/support/fake-signaling.ts'
import { createAnnouncer } from './announcer.ts'
import { createStepMeter } from './step-meter.ts'
import type { HeldStage } from './stage-holder.ts'
import { freshState } from './worker-view.ts'

const manifestOf = (id: string, revision: string): Manifest => ({
  ...modelOf(),
  id: id as ModelId,
  revision,
})
const servedOf = (id: string, revision = `of-${id}`) => ({
  model: id as ModelId,
  revision,
  manifestPath: `/models/${id}/manifest.json`,
})

/** A worker's announcer whose manifests the test hands out. */
function setUp() {
  const state = freshState({ pledgeBytes: 1_000, paused: false })
  state.runner = { provider: 'wasm', threads: 1, notes: [] }
  const told: ClientMessage[] = []
  const meter = createStepMeter()
  const stage = { held: null as HeldStage | null }
  const done: string[] = []
  const loads: { path: string; give: (manifest: Manifest) => void }[] = []
  const announcer = createAnnouncer({
    state,
    store: { list: () => Promise.resolve([]), usage: () => Promise.reject(new Error('none')) },
    holder: {
      held: () => stage.held,
      announce: () => void done.push('announce'),
      drop: () => void done.push('drop'),
    },
    links: { announce: () => undefined, closeAll: () => void done.push('close links') },
    pieceLinks: { closeAll: () => void done.push('close piece links') },
    sessions: {
      park: () => void done.push('park sessions'),
      dropAll() {
        done.push('drop sessions')
        return Promise.resolve()
      },
    },
    meter,
    tell: (message) => told.push(message),
    loadManifest: (path) => new Promise((give) => loads.push({ path, give })),
    changed: () => undefined,
  })
  const pledged = () => told.map((message) => (message.kind === 'pledge' ? message.revision : ''))
  return { announcer, state, stage, meter, told, done, loads, pledged }
}

async function joined() {
  const kit = setUp()
  const welcomed = kit.announcer.welcomed(testWelcome(servedOf('a')))
  kit.loads.shift()?.give(manifestOf('a', 'of-a'))
  await welcomed
  kit.done.length = 0
  return kit
}

test('MO3 another model: what was held goes, then the pledge names the new one', async () => {
  const { announcer, done, loads, pledged } = await joined()
  const changed = announcer.modelChanged(servedOf('b'))
  expect(loads[0]?.path).toBe('/models/b/manifest.json')
  // Until the manifest is here it is still a device of the former model.
  await announcer.pledge()
  loads[0]?.give(manifestOf('b', 'of-b'))
  await changed
  expect(pledged()).toEqual(['of-a', 'of-a', 'of-b'])
  expect(done).toEqual(['drop', 'drop sessions'])
})

test('MO3 of two models in a row only the newest is obeyed, whichever manifest comes first', async () => {
  const { announcer, state, loads, pledged } = await joined()
  const first = announcer.modelChanged(servedOf('b'))
  const second = announcer.modelChanged(servedOf('c'))
  loads[1]?.give(manifestOf('c', 'of-c'))
  await second
  loads[0]?.give(manifestOf('b', 'of-b'))
  await first
  expect(state.manifest?.id).toBe('c')
  expect(pledged()).toEqual(['of-a', 'of-c'])
})

test('MO3 a manifest of another revision than was told is refused', async () => {
  const { announcer, state, loads, pledged } = await joined()
  const changed = announcer.modelChanged(servedOf('b'))
  loads[0]?.give(manifestOf('b', 'older'))
  await expect(changed).rejects.toMatchObject({ code: 'model-invalid' })
  expect(state.manifest?.id).toBe('a')
  expect(pledged()).toEqual(['of-a'])
})

test('a model that changes while a welcome is being followed leaves no old link behind', async () => {
  const { announcer, done, loads, pledged } = await joined()
  const welcomed = announcer.welcomed(testWelcome(servedOf('a', 'rebuilt')))
  const changed = announcer.modelChanged(servedOf('b'))
  loads[0]?.give(manifestOf('a', 'rebuilt'))
  loads[1]?.give(manifestOf('b', 'of-b'))
  await Promise.all([welcomed, changed])
  expect(done).toContain('close links')
  expect(done).not.toContain('announce')
  expect(pledged()).toEqual(['of-a', 'of-b'])
})

test('the same model after a reconnect is not read again', async () => {
  const { announcer, done, loads, pledged } = await joined()
  await announcer.welcomed(testWelcome(servedOf('a')))
  expect(loads).toEqual([])
  expect(done).toEqual(['close links', 'close piece links', 'park sessions', 'announce'])
  expect(pledged()).toEqual(['of-a', 'of-a'])
})

test('what a step takes is told when it is known, changes, or another order came, and not again', () => {
  const { announcer, stage, meter, told } = setUp()
  const hold = (assignment: number): void => {
    const bytes = { doneBytes: 0, totalBytes: 0, fetchedBytes: 0, peerBytes: 0 }
    const range = { start: 1, end: 2 }
    stage.held = { assignment, range, reason: '', state: 'ready', error: null, ...bytes }
  }
  const news = (): unknown[] => {
    told.length = 0
    announcer.stats()
    return [...told]
  }
  expect(news()).toEqual([])
  hold(1)
  expect(news()).toEqual([])
  meter.expect(4)
  expect(news()).toMatchObject([{ assignment: 1, steps: 0, stepMs: 4 }])
  expect(news()).toEqual([])
  meter.add(1, 4)
  expect(news()).toMatchObject([{ assignment: 1, steps: 1, stepMs: 4 }])
  hold(2)
  expect(news()).toMatchObject([{ assignment: 2, steps: 1, stepMs: 4 }])
  expect(news()).toEqual([])
})
