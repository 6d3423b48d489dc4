import { expect, test } from 'vitest'
import type { Manifest } from '../sdk/core/model/manifest.ts'
import { at, fakeRing, fakeSwarm } from '../test/support/fake-swarm.ts'
import { hashOf, modelOf } from '../test/support/host-fixtures.ts'
import { withoutNames } from './swarm-snapshot.ts'

test('whoever does not know the secret sees no name, note, error or address', () => {
  const origins = ['http://192.168.1.5:7080']
  const { swarm, workers, asker } = fakeRing(modelOf(), 2, { origins: () => origins })
  swarm.ask(asker, 'r1')
  at(workers, 1).handle.closed()
  const whole = swarm.service.snapshot()
  expect(whole.origins).toEqual(origins)
  expect(asker.all('swarm').length).toBeGreaterThan(0)
  expect(whole.requests[0]?.error).toContain('w1, which held')
  const blank = withoutNames(whole)
  expect(blank.origins).toEqual([])
  expect(blank.requests[0]).toMatchObject({ state: 'repairing', error: '' })
  expect(blank.peers.map(({ name, note }) => [name, note])).toEqual([
    ['device 1', ''],
    ['device 2', ''],
    ['device 3', ''],
  ])
})

test('the model’s bytes are those of its distinct pieces: a tied table counts once, graphs count too', () => {
  const plain = modelOf()
  const bytesOf = (model: Manifest) => fakeSwarm(model, 1).service.snapshot().model.bytes
  expect(bytesOf(plain)).toBe(62_000)
  const [embedding] = plain.blocks
  const graph = { sha256: hashOf(99), bytes: 500 }
  const blocks = plain.blocks.map((block) => {
    if (block.kind === 'layer') return { ...block, graph }
    return block.kind === 'head' ? { ...block, data: embedding?.data ?? [] } : block
  })
  expect(bytesOf({ ...plain, blocks })).toBe(61_500)
})
