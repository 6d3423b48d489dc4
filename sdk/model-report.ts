import { kvBytesPerToken, type Block, type WeightDtype } from './core/model/manifest.ts'
import type { PlanModel } from './core/plan/device.ts'
import { devicesNeeded } from './core/plan/devices-needed.ts'
import { bytesPerWeight } from './core/plan/dtype-bytes.ts'

export type SizedBlock = {
  readonly name: string
  readonly count: number
  /** As it is stored, bytes of one. */
  readonly bytes: number
  /** What it would take in each dtype, bytes of one. */
  readonly byDtype: Readonly<Record<WeightDtype, number>>
}

export type DeviceCount = {
  readonly gigabytes: number
  /** Tabs with WebGPU and Node workers with a GPU; null = no block fits. */
  readonly gpu: number | null
  /** Tabs without: weights are f32 there. */
  readonly wasm: number | null
}

export type ModelSizes = {
  readonly weights: number
  readonly storedBytes: number
  /** Keys and values of all layers, f32. */
  readonly kvBytesPerToken: number
  readonly blocks: readonly SizedBlock[]
  readonly devices: readonly DeviceCount[]
}

const DEVICE_GIGABYTES = [1, 2, 4, 8] as const

/** Sizes of a model, and how many devices hold it with full contexts. `tied`: the head uses the embedding's table. */
export function reportSizes(
  model: PlanModel & { readonly vocabSize: number; readonly hiddenSize: number },
  tied: boolean,
): ModelSizes {
  const blocks = groupBlocks(model.blocks)
  const tableSize = tied ? model.vocabSize * model.hiddenSize : 0
  return {
    weights: sum(model.blocks.map(weightCount)) - tableSize,
    storedBytes: storedOnce(model.blocks, tied),
    kvBytesPerToken: kvBytesPerToken(model) * model.layerCount,
    blocks,
    devices: DEVICE_GIGABYTES.map((gigabytes) => {
      const bytes = gigabytes * 1e9
      return {
        gigabytes,
        gpu: devicesNeeded(model, { bytes, provider: 'webgpu' }),
        wasm: devicesNeeded(model, { bytes, provider: 'wasm' }),
      }
    }),
  }
}

/** A tied table is stored once. */
function storedOnce(blocks: readonly Block[], tied: boolean): number {
  const all = sum(blocks.map((block) => block.dataBytes))
  return tied ? all - (blocks[0]?.dataBytes ?? 0) : all
}

/** Equal layers stand together. */
function groupBlocks(blocks: readonly Block[]): SizedBlock[] {
  const groups: SizedBlock[] = []
  let first = 0
  for (const [index, block] of blocks.entries()) {
    const last = groups.at(-1)
    const same = last?.name.startsWith(block.kind) === true && last.bytes === block.dataBytes
    if (!same) first = index
    const name = block.kind === 'layer' ? layerName(first, index) : block.kind
    if (same) groups.pop()
    const count = same ? last.count + 1 : 1
    groups.push({ name, count, bytes: block.dataBytes, byDtype: byDtype(block) })
  }
  return groups
}

function layerName(first: number, last: number): string {
  return first === last ? `layer ${first}` : `layers ${first}–${last}`
}

function byDtype(block: Block): SizedBlock['byDtype'] {
  const bytes = (dtype: WeightDtype): number =>
    Math.round(weightCount(block) * bytesPerWeight(dtype, block.kind))
  return { q4: bytes('q4'), q8: bytes('q8'), f16: bytes('f16'), f32: bytes('f32') }
}

function weightCount(block: Block): number {
  return block.weightCount ?? block.f32Bytes / 4
}

function sum(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0)
}
