import type { PeerId } from '../ids.ts'
import { withHidden } from '../plan/lap.ts'
import { createWork } from '../plan/work.ts'
import { hopCosts } from './hops.ts'
import type { LapPrediction, RequestState, RouteEntry } from './request-state.ts'
import type { PeerState, SwarmState } from './state.ts'

/** A decode step of one device, ms, and whether it follows from measurements. */
export type StepPrediction = { readonly ms: number; readonly isMeasured: boolean }

/** The present range's own mean where there is one, else the device's speed, else a guess by bytes. */
export function createStepPredictor(
  state: SwarmState,
): (peer: PeerState, range: RouteEntry['range']) => StepPrediction {
  const work = createWork(state.model)
  return ({ stepMs, speed, pledge, assignment }, range) => {
    const isOwn = assignment?.range?.start === range.start && assignment.range.end === range.end
    if (stepMs !== null && isOwn) return { ms: stepMs, isMeasured: true }
    const provider = pledge?.provider ?? 'wasm'
    const layers = Math.max(0.1, work.layers(provider, range))
    if (speed !== null) return { ms: layers * speed.ms, isMeasured: true }
    return { ms: layers * work.guessMs(provider), isMeasured: false }
  }
}

/**
 * How much of its time each device spends on the sessions that run, 1 = one that it computes alone: a session is at
 * one stage of its chain at a time, and a new one waits for it there only.
 */
export function loadPerPeer(state: SwarmState): ReadonlyMap<PeerId, number> {
  const load = new Map<PeerId, number>()
  for (const request of state.requests.values()) {
    if (request.phase !== 'opening' && request.phase !== 'running') continue
    for (const [index, { peer }] of request.stages.entries())
      load.set(peer, (load.get(peer) ?? 0) + shareOf(request, index))
  }
  return load
}

function shareOf({ stages, stageMs, timings, prediction }: RequestState, index: number): number {
  const lapMs = timings?.lapMs ?? prediction?.lapMs ?? 0
  const ms = stageMs[index] ?? null
  return ms === null || lapMs <= 0 ? 1 / stages.length : Math.min(1, ms / lapMs)
}

/** What a lap of a new session over these stages is expected to take, with the sessions that run already. */
export function predictLap(state: SwarmState, stages: readonly RouteEntry[]): LapPrediction {
  const step = createStepPredictor(state)
  const load = loadPerPeer(state)
  const hopMs = hopCosts(state)
  let lapMs = 0
  let isMeasured = true
  for (const [index, { peer: id, range }] of stages.entries()) {
    const peer = state.peers.get(id)
    if (!peer) continue
    const own = step(peer, range)
    const isHidden = peer.pledge?.hidden === true && peer.stepMs === null
    lapMs += withHidden(own.ms, isHidden) * (1 + (load.get(id) ?? 0))
    isMeasured &&= own.isMeasured
    const next = stages[(index + 1) % stages.length]
    if (next && next.peer !== id) lapMs += hopMs(id, next.peer)
  }
  return { lapMs, isMeasured }
}
