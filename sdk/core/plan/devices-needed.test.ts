import { expect, test } from 'vitest'
import type { Block } from '../model/manifest.ts'
import type { PlanModel } from './device.ts'
import { devicesNeeded } from './devices-needed.ts'

const block = (kind: Block['kind'], bytes: number): Block => ({
  kind,
  dataBytes: bytes,
  f32Bytes: 4 * bytes,
  graph: null,
  data: [],
})

/** Six layers of 100 bytes, each with a cache of 2 × 8 × 5 tokens × 2 answers = 160. */
const MODEL: PlanModel = {
  dtype: 'q4',
  layerCount: 6,
  kvHeadCount: 1,
  headSize: 1,
  contextLength: 10,
  blocks: [
    block('embedding', 200),
    ...Array.from({ length: 6 }, () => block('layer', 100)),
    block('head', 200),
  ],
}

test.each([
  [10_000, 'webgpu', 1],
  // 400 + 6 × 260
  [1_960, 'webgpu', 1],
  [1_959, 'webgpu', 2],
  // 200 + 260, then twice 520, then 260 + 200: 460 is the smallest that takes an end with a layer.
  [520, 'webgpu', 4],
  [260, 'webgpu', 8],
  [259, 'webgpu', null],
  // Expanded to f32 on WASM: layers of 560, ends of 800.
  [260, 'wasm', null],
  [1_360, 'wasm', 4],
] as const)('devices of %i bytes on %s: %s', (bytes, provider, count) => {
  expect(devicesNeeded(MODEL, { bytes, provider })).toBe(count)
})
