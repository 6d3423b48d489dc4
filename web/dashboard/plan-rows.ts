import { describeRange } from '../../sdk/core/model/block-range.ts'
import type { SwarmSnapshot } from '../../sdk/protocol/swarm-snapshot.ts'

/** A device that the plan has something else for than it holds now. */
export type PlanRow = {
  readonly peer: string
  readonly name: string
  readonly now: string
  readonly next: string
  readonly why: string
}

/** Who holds what next and why; who stays as it is isn't listed. Spares are, with what they keep. */
export function planRows({ plan, peers, model }: SwarmSnapshot): PlanRow[] {
  const words = (range: { start: number; end: number } | null): string =>
    range === null ? 'nothing' : describeRange(range, model.layerCount)
  return plan.devices.flatMap(({ peer: id, range, keep, reason }) => {
    const peer = peers.find((one) => one.peer === id)
    if (peer === undefined) return []
    const now = peer.state === 'ready' || peer.range === null ? words(peer.range) : 'loading'
    const next = keep === null ? words(range) : `nothing, keeps ${words(keep)}`
    if (now === next) return []
    return [{ peer: id, name: peer.name || id.slice(0, 8), now, next, why: reason }]
  })
}
