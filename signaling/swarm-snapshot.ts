import { swarmAdvice } from '../sdk/core/swarm/advice.ts'
import type { PeerState, RequestState, SwarmState } from '../sdk/core/swarm/state.ts'
import { isComplete, missingRanges } from '../sdk/core/swarm/views.ts'
import type { SwarmSnapshot } from '../sdk/protocol/swarm-snapshot.ts'

type PeerView = SwarmSnapshot['peers'][number]
type RequestView = SwarmSnapshot['requests'][number]

/** Bounds of the schema. */
const PEERS_SHOWN = 1_024
const REQUESTS_SHOWN = 64

/** What pages show. No text of anybody, no secret. */
export function swarmSnapshotOf(state: SwarmState): SwarmSnapshot {
  const { model } = state
  return {
    model: {
      id: model.id,
      layerCount: model.layerCount,
      blockCount: model.blocks.length,
      bytes: model.blocks.reduce((sum, block) => sum + block.dataBytes, 0),
      contextLength: model.contextLength,
    },
    complete: isComplete(state),
    missing: missingRanges(state).map((range) => ({ ...range })),
    advice: swarmAdvice(state).slice(0, 300),
    peers: [...state.peers.values()].slice(0, PEERS_SHOWN).map(peerView),
    links: [...state.pairs.values()].slice(0, PEERS_SHOWN).map((pair) => ({
      pair: pair.pair,
      from: pair.from,
      to: pair.to,
      state: pair.state,
      path: pair.path,
      rttMs: pair.rttMs,
      relayedBytes: pair.relayedBytes,
    })),
    requests: [...state.requests.values()].slice(-REQUESTS_SHOWN).map(requestView),
    relayedBytes: state.relayedBytes,
    laps: state.laps,
  }
}

function peerView(peer: PeerState): PeerView {
  const range = peer.assignment?.range ?? null
  return {
    peer: peer.peer,
    name: peer.name,
    role: peer.role,
    state: peerPhase(peer),
    range: range === null ? null : { ...range },
    provider: peer.pledge?.provider ?? null,
    pledgeBytes: peer.pledge?.memoryBytes ?? 0,
    doneBytes: peer.assignment?.doneBytes ?? 0,
    totalBytes: peer.assignment?.totalBytes ?? 0,
    fetchedBytes: peer.assignment?.fetchedBytes ?? 0,
    stepMs: peer.stepMs,
    tokens: peer.tokens,
    hidden: peer.pledge?.hidden ?? false,
    note: noteOf(peer).slice(0, 600),
  }
}

function peerPhase(peer: PeerState): PeerView['state'] {
  if (peer.droppedAt !== null) return 'joining'
  if (peer.role !== 'worker') return 'spare'
  if (peer.pledge === null) return 'joining'
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
    promptTokens: request.promptLength,
    tokens: request.tokens,
    firstTokenMs: request.firstTokenMs,
    lapMs: request.timings?.lapMs ?? null,
    computeMs: request.timings?.computeMs ?? null,
    hopMs: request.timings?.hopMs ?? null,
    error: (request.error?.message ?? '').slice(0, 600),
  }
}

/** For whoever doesn't know the pool's secret: what the ring can do, and nobody's name or note. */
export function withoutNames(snapshot: SwarmSnapshot): SwarmSnapshot {
  return {
    ...snapshot,
    peers: snapshot.peers.map((peer, index) => ({
      ...peer,
      name: `device ${index + 1}`,
      note: '',
    })),
  }
}
