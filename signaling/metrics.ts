import { Counter, Gauge, Histogram, Registry } from 'prom-client'
import type { RequestState } from '../sdk/core/swarm/request-state.ts'
import type { PeerRole, SwarmState } from '../sdk/core/swarm/state.ts'
import type { SwarmEvent } from '../sdk/core/swarm/events.ts'
import { isComplete, isReady } from '../sdk/core/swarm/views.ts'

/** The numbers of one host for Prometheus. Names and texts of nobody. */
export type HostMetrics = {
  /** To be told of every event, with the state after it. */
  observe(event: SwarmEvent, after: SwarmState): void
  /** An answer of the API went out, with this status, or `closed` when the other end was gone first. */
  answered(path: string, status: number | 'closed'): void
  readonly contentType: string
  /** In Prometheus' text format. */
  text(): Promise<string>
}

const ROLES: readonly PeerRole[] = ['worker', 'asker', 'watcher']
const PHASES = ['queued', 'opening', 'running'] as const
const API_PATHS: readonly string[] = ['/models', '/chat/completions', '/completions']
/** From a small model on one machine to a large one on phones. */
const LAP_SECONDS = [0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10]
const HOP_SECONDS = [0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1]
/** Part of the measured lap: a tenth is good, twice is a guess. */
const ERROR_PARTS = [0.02, 0.05, 0.1, 0.2, 0.3, 0.5, 1, 2, 5]
const FIRST_TOKEN_SECONDS = [0.01, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60]

/** `state`: the swarm as it is when somebody looks. */
export function createHostMetrics(state: () => SwarmState): HostMetrics {
  const registry = new Registry()
  addGauges(registry, state)
  const requests = new Counter({
    name: 'crowdinfer_requests_total',
    help: 'Requests that ended, by outcome. cancelled = by the asker, at a stop string too, or with its connection, after which it may ask on.',
    labelNames: ['outcome'],
    registers: [registry],
  })
  const answers = new Counter({
    name: 'crowdinfer_api_answers_total',
    help: 'Answers of the API under /v1, refusals too, by HTTP status; closed = nobody waited for it.',
    labelNames: ['path', 'status'],
    registers: [registry],
  })
  const tokens = new Counter({
    name: 'crowdinfer_tokens_total',
    help: 'Tokens: of prompts that were started, and chosen by the ring.',
    labelNames: ['kind'],
    registers: [registry],
  })
  const timed = addHistograms(registry)

  return {
    contentType: registry.contentType,
    text: () => registry.metrics(),
    answered(path, status) {
      // Any text may be asked for as a path: each would be a series for ever.
      answers.inc({ path: API_PATHS.includes(path) ? path : 'other', status })
    },
    observe(event, after) {
      if (event.kind === 'token-chosen') tokens.inc({ kind: 'answer' })
      if (event.kind === 'session-started') {
        const request = after.requests.get(event.key)
        // Not again where the answer goes on over another route, or for an asker that came back.
        const isFirst = request?.startedAt === request?.progressAt
        if (request?.resumed === false && isFirst)
          tokens.inc({ kind: 'prompt' }, request.promptLength)
      }
      if (event.kind !== 'request-ended') return
      requests.inc({ outcome: event.reason })
      const request = after.requests.get(event.key)
      if (request !== undefined) timed(request)
    },
  }
}

function addGauges(registry: Registry, state: () => SwarmState): void {
  const registers = [registry]
  const gauge = (name: string, help: string, value: (now: SwarmState) => number): void => {
    new Gauge({
      name,
      help,
      registers,
      collect() {
        this.set(value(state()))
      },
    })
  }
  gauge('crowdinfer_workers_ready', 'Workers whose layers are loaded.', ({ peers }) =>
    count(peers.values(), isReady),
  )
  gauge('crowdinfer_ring_complete', '1 when a question can be answered now.', (now) =>
    isComplete(now) ? 1 : 0,
  )
  new Gauge({
    name: 'crowdinfer_model_info',
    help: 'Always 1; the label is the model that is served.',
    labelNames: ['model'],
    registers,
    collect() {
      this.reset()
      this.set({ model: state().model.id }, 1)
    },
  })
  new Gauge({
    name: 'crowdinfer_peers',
    help: 'Who is connected.',
    labelNames: ['role'],
    registers,
    collect() {
      for (const role of ROLES)
        this.set(
          { role },
          count(state().peers.values(), (peer) => peer.role === role),
        )
    },
  })
  new Gauge({
    name: 'crowdinfer_requests',
    help: 'Requests that have not ended; queued ones wait for their turn.',
    labelNames: ['phase'],
    registers,
    collect() {
      for (const phase of PHASES)
        this.set(
          { phase },
          count(state().requests.values(), (request) => request.phase === phase),
        )
    },
  })
  const total = (name: string, help: string, value: (now: SwarmState) => number): void => {
    new Counter({
      name,
      help,
      registers,
      // The swarm counts itself, and never down.
      collect() {
        this.reset()
        this.inc(value(state()))
      },
    })
  }
  new Counter({
    name: 'crowdinfer_piece_bytes_total',
    help: 'Bytes of weights that devices fetched, as they report it, by who gave them.',
    labelNames: ['source'],
    registers,
    collect() {
      this.reset()
      const { host, peers } = state().pieceBytes
      this.inc({ source: 'host' }, host)
      this.inc({ source: 'peers' }, peers)
    },
  })
  total('crowdinfer_laps_total', 'Times round the ring.', ({ laps }) => laps)
  total(
    'crowdinfer_relayed_bytes_total',
    'Bytes of frames that passed the host.',
    (now) => now.relayedBytes,
  )
}

/** Means of each request that ended, where it was timed. */
function addHistograms(registry: Registry): (request: RequestState) => void {
  const make = (name: string, help: string, buckets: number[]): Histogram =>
    new Histogram({ name, help, buckets, registers: [registry] })
  const firstToken = make(
    'crowdinfer_first_token_seconds',
    'From the prompt to the first token.',
    FIRST_TOKEN_SECONDS,
  )
  const lap = make('crowdinfer_lap_seconds', 'Once round the ring: mean of a request.', LAP_SECONDS)
  const compute = make(
    'crowdinfer_lap_compute_seconds',
    'The stages’ compute in a lap.',
    LAP_SECONDS,
  )
  const hop = make('crowdinfer_hop_seconds', 'From one stage to the next.', HOP_SECONDS)
  const predicted = make(
    'crowdinfer_lap_predicted_seconds',
    'What a lap was expected to take when the route was chosen, of the laps in crowdinfer_lap_seconds.',
    LAP_SECONDS,
  )
  const error = new Histogram({
    name: 'crowdinfer_lap_prediction_error',
    help: 'How far the measured lap was from the predicted one, as a part of the measured. guessed = a device of the route had never been measured.',
    labelNames: ['basis'],
    buckets: ERROR_PARTS,
    registers: [registry],
  })
  return ({ firstTokenMs, timings, prediction }) => {
    if (firstTokenMs !== null) firstToken.observe(firstTokenMs / 1_000)
    // One token alone is no lap, nor is the only one behind an interruption.
    if (timings === null || timings.tokens < 2 || timings.lapMs === 0) return
    lap.observe(timings.lapMs / 1_000)
    if (prediction !== null && timings.lapMs > 0) {
      predicted.observe(prediction.lapMs / 1_000)
      const basis = prediction.isMeasured ? 'measured' : 'guessed'
      error.observe({ basis }, Math.abs(timings.lapMs - prediction.lapMs) / timings.lapMs)
    }
    compute.observe(timings.computeMs / 1_000)
    if (timings.hops > 0) hop.observe(timings.hopMs / 1_000)
  }
}

function count<T>(items: Iterable<T>, counts: (item: T) => boolean): number {
  let found = 0
  for (const item of items) if (counts(item)) found += 1
  return found
}
