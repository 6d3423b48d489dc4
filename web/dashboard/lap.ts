import { describeRange } from '../../sdk/core/model/block-range.ts'
import type { SwarmSnapshot } from '../../sdk/protocol/swarm-snapshot.ts'

type Link = SwarmSnapshot['links'][number]

/** Where the time of one lap of a request went. Times in ms; those of a lap are means over the request's laps. */
export type Lap = {
  readonly request: string
  readonly lapMs: number
  /** Sum over the stages, as they measured it. */
  readonly computeMs: number
  /** Not measured: the lap minus the compute, so wire, queues, and framing. */
  readonly wireMs: number
  /** `wireMs` spread evenly over the hops. */
  readonly hopMs: number
  readonly hops: readonly Hop[]
}

/** One stage of the chain and the link that leads on from it. */
type Hop = {
  readonly peer: string
  readonly name: string
  readonly holds: string
  /** The device's present smoothed step, for any request; not a part of this lap's compute. */
  readonly stepMs: number | null
  /** null for a chain of one. */
  readonly link: Pick<Link, 'path' | 'rttMs'> | null
}

/** The newest requests that were measured, at most `count`, newest first; the snapshot has the oldest first. */
export function recentLaps(swarm: SwarmSnapshot, count: number): Lap[] {
  return [...swarm.requests]
    .reverse()
    .flatMap((request) => {
      const { lapMs, computeMs, hopMs } = request
      if (lapMs === null || lapMs <= 0 || computeMs === null) return []
      return [
        {
          request: request.id,
          lapMs,
          computeMs,
          wireMs: Math.max(lapMs - computeMs, 0),
          hopMs: hopMs ?? 0,
          hops: hopsOf(swarm, request.stages),
        },
      ]
    })
    .slice(0, count)
}

function hopsOf(swarm: SwarmSnapshot, stages: readonly string[]): Hop[] {
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
      stepMs: peer?.stepMs ?? null,
      link: link === undefined ? null : { path: link.path, rttMs: link.rttMs },
    }
  })
}

function joins(link: Link, a: string, b: string): boolean {
  return (link.from === a && link.to === b) || (link.from === b && link.to === a)
}
