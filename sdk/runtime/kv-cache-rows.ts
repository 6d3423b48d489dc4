import type { Tensor } from 'onnxruntime-common'
import { CrowdError } from '../core/errors.ts'
import { capacityFor, type KvCache, type KvShape } from './kv-cache.ts'
import type { Ort } from './ort-backend.ts'

/**
 * The cache of the CPU providers (WASM, Node): the graph returns only the new rows, which are copied into
 * our arrays. In-place outputs are silently stale on WASM and copied in whole on Node.
 */
export function createRowsKvCache(ort: Ort, shape: KvShape): KvCache {
  const { kvHeadCount, headSize, contextLength } = shape
  let capacity = 0
  let keys = new Float32Array(0) // [KV, capacity, D]
  let values = new Float32Array(0) // [KV, capacity, D]

  /** Copies `rows` rows of every head from one array to another of different row counts. */
  function copyRows(
    from: { readonly data: Float32Array; readonly rows: number },
    to: { readonly data: Float32Array; readonly rows: number; readonly at: number },
    rows: number,
  ): void {
    for (let head = 0; head < kvHeadCount; head++) {
      const start = head * from.rows * headSize
      const target = (head * to.rows + to.at) * headSize
      to.data.set(from.data.subarray(start, start + rows * headSize), target)
    }
  }

  function grown(data: Float32Array, rows: number, kept: number): Float32Array<ArrayBuffer> {
    const next = new Float32Array(kvHeadCount * rows * headSize)
    copyRows({ data, rows: capacity }, { data: next, rows, at: 0 }, kept)
    return next
  }

  function take(output: Tensor | undefined, into: Float32Array, at: number, count: number): void {
    const data = output?.data
    if (!(data instanceof Float32Array) || data.length !== kvHeadCount * count * headSize) {
      throw new CrowdError('stage-failed', 'a layer returned cache rows of another shape')
    }
    copyRows({ data, rows: count }, { data: into, rows: capacity, at }, count)
  }

  const tensor = (data: Float32Array): Tensor =>
    new ort.Tensor('float32', data, [1, kvHeadCount, capacity, headSize])

  return {
    reserve(total, kept) {
      if (total <= capacity) return
      const rows = capacityFor(total, contextLength)
      keys = grown(keys, rows, kept)
      values = grown(values, rows, kept)
      capacity = rows
    },
    feeds: () => ({ 'past.key': tensor(keys), 'past.value': tensor(values) }),
    fetches: () => ({}),
    append(outputs, position, count) {
      take(outputs['new.key'], keys, position, count)
      take(outputs['new.value'], values, position, count)
    },
    dispose() {
      capacity = 0
      keys = new Float32Array(0)
      values = new Float32Array(0)
    },
  }
}
