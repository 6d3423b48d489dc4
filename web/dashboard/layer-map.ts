import { describeRange } from '../../sdk/core/model/block-range.ts'
import type { SwarmSnapshot } from '../../sdk/protocol/swarm-snapshot.ts'

/** A device's part in one block: computed there, on its way there, or not there. */
export type Holding = 'ready' | 'coming' | 'none'

export type LayerMap = {
  readonly columns: readonly {
    readonly block: number
    /** `E`, `1` … `L`, `H`. */
    readonly label: string
    /** In words. */
    readonly title: string
    /** Devices that are ready with it. */
    readonly copies: number
  }[]
  readonly rows: readonly {
    readonly peer: string
    readonly name: string
    readonly summary: string
    /** By column. */
    readonly cells: readonly Holding[]
  }[]
}

/** Devices × blocks, with the ones that come first in the model on top. */
export function buildLayerMap(swarm: SwarmSnapshot): LayerMap {
  const { blockCount, layerCount } = swarm.model
  const blocks = Array.from({ length: blockCount }, (_, block) => block)
  const holders = swarm.peers
    .filter((peer) => peer.role === 'worker' && peer.range !== null)
    .sort((a, b) => (a.range?.start ?? 0) - (b.range?.start ?? 0))
  const rows = holders.map((peer) => ({
    peer: peer.peer,
    name: peer.name === '' ? peer.peer.slice(0, 8) : peer.name,
    summary:
      (peer.range === null ? 'nothing' : describeRange(peer.range, layerCount)) +
      (peer.state === 'ready' ? '' : ` (${peer.state})`),
    cells: blocks.map((block) => holding(peer, block)),
  }))
  const columns = blocks.map((block) => ({
    block,
    label: block === 0 ? 'E' : block === blockCount - 1 ? 'H' : String(block),
    title: describeRange({ start: block, end: block + 1 }, layerCount),
    copies: rows.filter((row) => row.cells[block] === 'ready').length,
  }))
  return { columns, rows }
}

function holding(peer: SwarmSnapshot['peers'][number], block: number): Holding {
  const { range, state } = peer
  if (range === null || block < range.start || block >= range.end) return 'none'
  if (state === 'ready') return 'ready'
  return state === 'fetching' || state === 'loading' ? 'coming' : 'none'
}
