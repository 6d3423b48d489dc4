import type { ModelId, PieceHash } from '../../sdk/core/ids.ts'
import type { Block, Manifest } from '../../sdk/core/model/manifest.ts'
import { imaginedDevice, type PlanDevice } from '../../sdk/core/plan/device.ts'

/** Small seeded generator (mulberry32), so that a failing case can be run again. */
export function seededRandom(seed: number): () => number {
  let state = seed >>> 0
  return () => {
    state = (state + 0x6d2b79f5) >>> 0
    let mixed = Math.imul(state ^ (state >>> 15), state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296
  }
}

/** Any 64 hex digits that differ by number; nothing is hashed. */
export function hashOf(number: number): PieceHash {
  return number.toString(16).padStart(64, '0') as PieceHash
}

type ModelShape = {
  readonly layers?: number
  readonly layerBytes?: number
  readonly embeddingBytes?: number
  readonly headBytes?: number
  readonly contextLength?: number
}

/** A model of round numbers: one KV token of one layer takes 8 bytes. */
export function modelOf(shape: ModelShape = {}): Manifest {
  const layers = shape.layers ?? 6
  const block = (kind: Block['kind'], bytes: number, index: number): Block => ({
    kind,
    graph: null,
    data: [{ sha256: hashOf(index + 1), bytes }],
    dataBytes: bytes,
    f32Bytes: bytes,
  })
  const blocks = [
    block('embedding', shape.embeddingBytes ?? 1_000, 0),
    ...Array.from({ length: layers }, (_, layer) =>
      block('layer', shape.layerBytes ?? 10_000, layer + 1),
    ),
    block('head', shape.headBytes ?? 1_000, layers + 1),
  ]
  return {
    format: 1,
    id: 'test-model' as ModelId,
    revision: 'r1',
    architecture: 'llama',
    dtype: 'f32',
    hiddenSize: 8,
    layerCount: layers,
    headCount: 1,
    kvHeadCount: 1,
    headSize: 1,
    vocabSize: 100,
    contextLength: shape.contextLength ?? 16,
    eosTokenIds: [2],
    blocks,
    files: {},
  }
}

export function deviceOf(name: string, over: Partial<PlanDevice> = {}): PlanDevice {
  return imaginedDevice(name, { pledgeBytes: 1e9, provider: 'wasm', ...over })
}
