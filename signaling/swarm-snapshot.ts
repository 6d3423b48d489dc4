import { lengthOf } from '../sdk/core/session/token-list.ts'
import { blockPieces, type Block } from '../sdk/core/model/manifest.ts'
import { reviewPlan } from '../sdk/core/plan/review.ts'
import { swarmAdvice } from '../sdk/core/swarm/advice.ts'
import type { RequestState } from '../sdk/core/swarm/request-state.ts'
import type { PairState, PeerState, SwarmState } from '../sdk/core/swarm/state.ts'
import { isComplete, missingRanges, planDevices } from '../sdk/core/swarm/views.ts'
import type { SwarmSnapshot } from '../sdk/protocol/swarm-snapshot.ts'

type PeerView = SwarmSnapshot['peers'][number]
type RequestView = SwarmSnapshot['requests'][number]

/** Bounds of the schema. */
const PEERS_SHOWN = 1_024
const REQUESTS_SHOWN = 64

/** What pages show. No text of anybody, no secret. */
export function swarmSnapshotOf(state: SwarmState, origins: readonly string[]): SwarmSnapshot {
  const { model } = state
  return {
    model: {
      id: model.id,
      layerCount: model.layerCount,
      blockCount: model.blocks.length,
      bytes: distinctBytes(model.blocks),
      contextLength: model.contextLength,
    },
    change: changeView(state),
    origins: [...origins],
    complete: isComplete(state),
    missing: missingRanges(state).map((range) => ({ ...range })),
    advice: swarmAdvice(state).slice(0, 300),
    plan: planView(state),
    peers: [...state.peers.values()].slice(0, PEERS_SHOWN).map(peerView),
    links: [...state.pairs.values()].filter(isOfRing).slice(0, PEERS_SHOWN).map(linkView),
    requests: [...state.requests.values()].slice(-REQUESTS_SHOWN).map(requestView),
    relayedBytes: state.relayedBytes,
    laps: state.laps,
  }
}

function planView(state: SwarmState): SwarmSnapshot['plan'] {
  const { model, minStages, plan } = state
  if (plan === null) {
    const missing = [{ start: 0, end: model.blocks.length }]
    return { lapMs: null, stages: 0, missing, advice: '', devices: [] }
  }
  const { lapMs, stages, missing, advice, devices } = reviewPlan(
    { model, minStages, devices: planDevices(state) },
    plan,
  )
  return {
    lapMs,
    stages,
    missing: missing.map((range) => ({ ...range })),
    advice: advice.slice(0, 200),
    devices: devices.slice(0, PEERS_SHOWN).map(({ peer, range, keep, bytes, reason }) => ({
      peer,
      range: range === null ? null : { ...range },
      keep: keep === null ? null : { ...keep },
      bytes,
      reason: reason.slice(0, 200),
    })),
  }
}

function isOfRing({ purpose }: PairState): boolean {
  return purpose === 'ring'
}

function linkView(link: PairState): SwarmSnapshot['links'][number] {
  const { pair, from, to, state, path, rttMs, relayedBytes } = link
  return { pair, from, to, state, path, rttMs, relayedBytes }
}

function changeView({ change }: SwarmState): SwarmSnapshot['change'] {
  if (change === null) return null
  const { name, phase, step } = change
  return { name: name.slice(0, 200), phase, step: step.slice(0, 200) }
}

/** What one device that holds everything downloads: a tied table counts once. */
function distinctBytes(blocks: readonly Block[]): number {
  const pieces = blocks.flatMap(blockPieces).map((piece) => [piece.sha256, piece.bytes] as const)
  return [...new Map(pieces).values()].reduce((sum, bytes) => sum + bytes, 0)
}

function peerView(peer: PeerState): PeerView {
  const { peer: id, name, role, pledge, assignment, stepMs, tokens } = peer
  return {
    peer: id,
    name,
    role,
    state: peerPhase(peer),
    ...heldView(assignment),
    provider: pledge === null ? null : pledge.provider,
    pledgeBytes: pledge === null ? 0 : pledge.memoryBytes,
    hidden: pledge !== null && pledge.hidden,
    stepMs,
    tokens,
    note: noteOf(peer).slice(0, 600),
  }
}

function heldView(
  assignment: PeerState['assignment'],
): Pick<PeerView, 'range' | 'doneBytes' | 'totalBytes' | 'fetchedBytes' | 'peerBytes'> {
  if (assignment === null)
    return { range: null, doneBytes: 0, totalBytes: 0, fetchedBytes: 0, peerBytes: 0 }
  const { doneBytes, totalBytes, fetchedBytes, peerBytes } = assignment
  const range = assignment.range === null ? null : { ...assignment.range }
  return { range, doneBytes, totalBytes, fetchedBytes, peerBytes }
}

function peerPhase(peer: PeerState): PeerView['state'] {
  if (peer.droppedAt !== null) return 'joining'
  if (peer.role !== 'worker') return 'spare'
  if (peer.pledge === null || !peer.pledged) return 'joining'
  if (peer.setAside !== null) return 'failed'
  if (peer.pledge.memoryBytes === 0) return 'paused'
  const { assignment } = peer
  if (assignment === null) return 'joining'
  if (assignment.range === null) return 'spare'
  return assignment.state === 'ordered' ? 'joining' : assignment.state
}

function noteOf(peer: PeerState): string {
  if (peer.droppedAt !== null) return 'connection lost; the place is kept for a moment'
  if (peer.setAside !== null) return peer.setAside
  return peer.assignment?.reason ?? ''
}

function requestView(request: RequestState): RequestView {
  return {
    id: request.key.slice(-80),
    state: request.phase,
    stages: request.stages.map((stage) => stage.peer),
    hops: request.wireMs.map((wireMs, stage) => ({
      computeMs: request.stageMs[stage] ?? null,
      wireMs,
    })),
    promptTokens: request.promptLength,
    tokens: lengthOf(request.answer),
    repairs: request.repairs,
    firstTokenMs: request.firstTokenMs,
    lapMs: request.timings?.lapMs ?? null,
    ...predictionView(request),
    computeMs: request.timings?.computeMs ?? null,
    hopMs: request.timings?.hopMs ?? null,
    error: ((request.error ?? request.broken?.error)?.message ?? '').slice(0, 600),
  }
}

function predictionView({
  prediction,
}: RequestState): Pick<RequestView, 'predictedLapMs' | 'predictionMeasured'> {
  if (prediction === null) return { predictedLapMs: null, predictionMeasured: false }
  return { predictedLapMs: prediction.lapMs, predictionMeasured: prediction.isMeasured }
}

/** For whoever doesn't know the pool's secret: what the ring can do, and no name, note, error or address. */
export function withoutNames(snapshot: SwarmSnapshot): SwarmSnapshot {
  return {
    ...snapshot,
    origins: [],
    // An error names the device that failed.
    requests: snapshot.requests.map((request) => ({ ...request, error: '' })),
    peers: snapshot.peers.map((peer, index) => ({
      ...peer,
      name: `device ${index + 1}`,
      note: '',
    })),
  }
}
