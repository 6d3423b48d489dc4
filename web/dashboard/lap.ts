import { describeRange } from '../../sdk/core/model/block-range.ts'
import type { SwarmSnapshot } from '../../sdk/protocol/swarm-snapshot.ts'

type Link = SwarmSnapshot['links'][number]
type Request = SwarmSnapshot['requests'][number]

/** Where the time of one lap of a request went. Times in ms; those of a lap are means over the request's laps. */
export type Lap = {
  readonly request: string
  readonly lapMs: number
  /** When the route was chosen; null = not told. */
  readonly predictedMs: number | null
  /** Sum over the stages, as they measured it. */
  readonly computeMs: number
  /** Sum over the hops; null where a link of them was not measured. At most what the compute leaves. */
  readonly wireMs: number | null
  /** What is left of the lap: queues and framing, and the wire where it was not measured. */
  readonly waitMs: number
  readonly hops: readonly Hop[]
}

/** One stage of the chain and the link that leads on from it. */
type Hop = {
  readonly peer: string
  readonly name: string
  readonly holds: string
  /** This stage's part of the lap's compute; null = not told. */
  readonly computeMs: number | null
  /** One way to the next stage, half of a heartbeat's round trip when the laps were timed; null = not measured. */
  readonly wireMs: number | null
  /** null for a chain of one. */
  readonly link: Pick<Link, 'path'> | null
}

/** The newest requests that were measured, at most `count`, newest first; the snapshot has the oldest first. */
export function recentLaps(swarm: SwarmSnapshot, count: number): Lap[] {
  return [...swarm.requests]
    .reverse()
    .flatMap((request) => {
      const { lapMs, computeMs } = request
      if (lapMs === null || lapMs <= 0 || computeMs === null) return []
      const hops = hopsOf(swarm, request)
      const restMs = Math.max(lapMs - computeMs, 0)
      // A heartbeat may have met a busier moment than the laps.
      const wireMs = sumOf(
        hops.map((hop) => hop.wireMs),
        restMs,
      )
      const waitMs = restMs - (wireMs ?? 0)
      const { id, predictedLapMs: predictedMs } = request
      return [{ request: id, lapMs, predictedMs, computeMs, wireMs, waitMs, hops }]
    })
    .slice(0, count)
}

function sumOf(parts: readonly (number | null)[], most: number): number | null {
  let sum = 0
  for (const part of parts) {
    if (part === null) return null
    sum += part
  }
  return Math.min(sum, most)
}

function hopsOf(swarm: SwarmSnapshot, { stages, hops }: Request): Hop[] {
  return stages.map((id, index) => {
    const peer = swarm.peers.find((candidate) => candidate.peer === id)
    const next = stages[(index + 1) % stages.length]
    const link =
      stages.length < 2
        ? undefined
        : swarm.links.find((candidate) => joins(candidate, id, next ?? id))
    return {
      peer: id,
      name: peer === undefined ? 'a device that left' : peer.name || id.slice(0, 8),
      holds:
        peer?.range === undefined || peer.range === null
          ? ''
          : describeRange(peer.range, swarm.model.layerCount),
      computeMs: hops[index]?.computeMs ?? null,
      wireMs: hops[index]?.wireMs ?? null,
      link: link === undefined ? null : { path: link.path },
    }
  })
}

function joins(link: Link, a: string, b: string): boolean {
  return (link.from === a && link.to === b) || (link.from === b && link.to === a)
}
