import type { Tensor } from 'onnxruntime-common'
import { CrowdError } from '../core/errors.ts'
import { capacityFor, type KvCache, type KvShape } from './kv-cache.ts'
import type { Ort } from './ort-backend.ts'

// GPUBufferUsage is a global of WebGPU realms only; the values are fixed by its specification.
const COPY_SRC = 0x4
const COPY_DST = 0x8
const STORAGE = 0x80

/**
 * The cache of the WebGPU provider: buffers on our own device that are input and output of the layer at
 * once, so nothing is copied but what is new.
 */
export function createGpuKvCache(ort: Ort, device: GPUDevice, shape: KvShape): KvCache {
  const { kvHeadCount, headSize, contextLength } = shape
  let capacity = 0
  let buffers: { key: GPUBuffer; value: GPUBuffer } | null = null

  function allocate(rows: number): GPUBuffer {
    const size = kvHeadCount * rows * headSize * 4
    if (size > device.limits.maxStorageBufferBindingSize) {
      throw new CrowdError('out-of-memory', `a cache of ${size} bytes is over this GPU's limit`)
    }
    return device.createBuffer({ size, usage: STORAGE | COPY_SRC | COPY_DST })
  }

  function copyHeads(from: GPUBuffer, to: GPUBuffer, rows: number, kept: number): void {
    const encoder = device.createCommandEncoder()
    for (let head = 0; head < kvHeadCount; head++) {
      const source = head * capacity * headSize * 4
      const target = head * rows * headSize * 4
      encoder.copyBufferToBuffer(from, source, to, target, kept * headSize * 4)
    }
    device.queue.submit([encoder.finish()])
  }

  function dispose(): void {
    buffers?.key.destroy()
    buffers?.value.destroy()
    buffers = null
    capacity = 0
  }

  function reserve(total: number, kept: number): void {
    if (total <= capacity) return
    const rows = capacityFor(total, contextLength)
    const next = { key: allocate(rows), value: allocate(rows) }
    if (buffers !== null && kept > 0) {
      copyHeads(buffers.key, next.key, rows, kept)
      copyHeads(buffers.value, next.value, rows, kept)
    }
    dispose()
    buffers = next
    capacity = rows
  }

  function tensors(name: 'past' | 'present'): Record<string, Tensor> {
    if (buffers === null) throw new CrowdError('internal', 'the cache has no buffers')
    const dims = [1, kvHeadCount, capacity, headSize]
    const wrap = (buffer: GPUBuffer): Tensor =>
      ort.Tensor.fromGpuBuffer(buffer, { dataType: 'float32', dims })
    return { [`${name}.key`]: wrap(buffers.key), [`${name}.value`]: wrap(buffers.value) }
  }

  return {
    reserve,
    feeds: () => tensors('past'),
    fetches: () => tensors('present'),
    append: () => undefined,
    dispose,
  }
}
