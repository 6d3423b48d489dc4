import type { BlockRange } from '../model/block-range.ts'

/** A range that can be part of a chain; `cost` below 1 000 only ranks chains that cover the same blocks. */
type Tile<Owner> = {
  readonly owner: Owner
  readonly range: BlockRange
  readonly cost: number
}

type Tiling<Owner> = {
  readonly tiles: readonly Tile<Owner>[]
  /** Runs of blocks that no tile covers. */
  readonly gaps: readonly BlockRange[]
}

/** Dwarfs every tile, so that covering one block more always wins. */
const GAP_COST = 1e6

/**
 * The chain of tiles, end to end without overlap, that leaves the fewest blocks out, then the cheapest.
 * Stages run their whole range, so overlapping ranges can't both be in a chain.
 */
export function bestTiling<Owner>(
  blockCount: number,
  tiles: readonly Tile<Owner>[],
): Tiling<Owner> {
  const byEnd = new Map<number, Tile<Owner>[]>()
  for (const tile of tiles) byEnd.set(tile.range.end, [...(byEnd.get(tile.range.end) ?? []), tile])
  const cost = [0]
  const last: (Tile<Owner> | null)[] = [null]
  for (let border = 1; border <= blockCount; border++) {
    cost[border] = (cost[border - 1] ?? 0) + GAP_COST
    last[border] = null
    for (const tile of byEnd.get(border) ?? []) {
      const total = (cost[tile.range.start] ?? Infinity) + 1 + tile.cost
      if (total < (cost[border] ?? Infinity)) {
        cost[border] = total
        last[border] = tile
      }
    }
  }
  return walkBack(blockCount, last)
}

function walkBack<Owner>(blockCount: number, last: readonly (Tile<Owner> | null)[]): Tiling<Owner> {
  const chosen: Tile<Owner>[] = []
  const missing: number[] = []
  let border = blockCount
  while (border > 0) {
    const tile = last[border]
    if (tile) {
      chosen.push(tile)
      border = tile.range.start
    } else {
      border -= 1
      missing.push(border)
    }
  }
  return { tiles: chosen.reverse(), gaps: runs(missing.reverse()) }
}

/** Ascending block numbers as ranges. */
function runs(blocks: readonly number[]): BlockRange[] {
  const result: { start: number; end: number }[] = []
  for (const block of blocks) {
    const open = result.at(-1)
    if (open?.end === block) open.end = block + 1
    else result.push({ start: block, end: block + 1 })
  }
  return result
}

/** Blocks that none of the ranges covers. */
export function uncovered(blockCount: number, ranges: readonly BlockRange[]): BlockRange[] {
  const missing: number[] = []
  for (let block = 0; block < blockCount; block++)
    if (!ranges.some((range) => block >= range.start && block < range.end)) missing.push(block)
  return runs(missing)
}
