import type { BlockRange } from '../model/block-range.ts'
import { blockPieces } from '../model/manifest.ts'
import type { PlanDevice, PlanModel } from './device.ts'

/** What devices have stored of a model, by block. */
export type StoredPieces = {
  /** Bytes of the pieces of a range that a device has. */
  bytes(device: PlanDevice, range: BlockRange): number
  /** Whether a device has every piece of a block. */
  has(device: PlanDevice, block: number): boolean
  /** The blocks that begin a run of blocks of which the device has something, ascending. */
  starts(device: PlanDevice): readonly number[]
}

type Held = { readonly sums: readonly number[]; readonly starts: readonly number[] }

const NOTHING: Held = { sums: [], starts: [] }

/** Looks through a device's pieces once: a plan asks for the same devices again and again. */
export function createStoredPieces({ blocks }: PlanModel): StoredPieces {
  const pieces = blocks.map((block) => blockPieces(block))
  const known = new Map<PlanDevice, Held>()
  const heldOf = (device: PlanDevice): Held => {
    if (device.cached.size === 0) return NOTHING
    const found = known.get(device)
    if (found) return found
    const sums = [0]
    const starts: number[] = []
    let before = 0
    for (const [block, list] of pieces.entries()) {
      let bytes = 0
      for (const piece of list) if (device.cached.has(piece.sha256)) bytes += piece.bytes
      if (bytes > 0 && before === 0) starts.push(block)
      sums.push((sums[block] ?? 0) + bytes)
      before = bytes
    }
    const held = { sums, starts }
    known.set(device, held)
    return held
  }
  return {
    bytes(device, range) {
      const { sums } = heldOf(device)
      return (sums[range.end] ?? 0) - (sums[range.start] ?? 0)
    },
    has: (device, block) =>
      device.cached.size > 0 &&
      (pieces[block] ?? []).every((piece) => device.cached.has(piece.sha256)),
    starts: (device) => heldOf(device).starts,
  }
}
