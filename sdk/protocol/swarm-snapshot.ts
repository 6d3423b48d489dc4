import * as v from 'valibot'
import { PROMPT_MAX_TOKENS, WIRE_MESSAGE_MAX } from '../core/limits.ts'
import {
  blockRange,
  bytes,
  channelPath,
  count,
  modelId,
  ms,
  name,
  pairId,
  peerId,
  provider,
  text,
} from './fields.ts'

/** What pages show of the swarm: the model's coverage, the devices, the links and the last requests. No text of anybody. */
export const swarmSnapshot = v.object({
  model: v.object({
    id: modelId,
    layerCount: count(1_000),
    /** Blocks: layers plus embedding and head. */
    blockCount: count(1_002),
    bytes,
    contextLength: count(PROMPT_MAX_TOKENS),
  }),
  /** The way to another model: made ready on the host, then answers end, then devices load it. null = none. */
  change: v.nullable(
    v.object({
      name: text(200),
      phase: v.picklist(['preparing', 'draining', 'loading']),
      /** What is being prepared, for people. */
      step: text(200),
    }),
  ),
  /** Where devices on the host's network reach it, e.g. `http://192.168.1.5:7080`, the likeliest first. */
  origins: v.pipe(v.array(text(200)), v.maxLength(8)),
  /** True when every block has a ready device and the route is linked. */
  complete: v.boolean(),
  /** Ranges without a ready device. */
  missing: v.pipe(v.array(blockRange), v.maxLength(1_002)),
  /** For people: "2 of 6 layers missing: open one more tab". Empty when complete. */
  advice: text(300),
  /** What the planner wants, which is what the devices hold as soon as they have loaded it and ended their answers. */
  plan: v.object({
    /** Predicted for the ring of the plan; null while blocks are missing. */
    lapMs: v.nullable(ms),
    stages: count(1_000),
    /** Blocks that nobody can be given. */
    missing: v.pipe(v.array(blockRange), v.maxLength(1_002)),
    /** For people: "2.1 GB short: one more device of 4 GB". Empty when nothing is missing. */
    advice: text(200),
    devices: v.pipe(
      v.array(
        v.object({
          peer: peerId,
          range: v.nullable(blockRange),
          /** What a spare keeps stored. */
          keep: v.nullable(blockRange),
          /** Of the pledge that this takes. */
          bytes,
          reason: text(200),
        }),
      ),
      v.maxLength(1_024),
    ),
  }),
  peers: v.pipe(
    v.array(
      v.object({
        peer: peerId,
        name,
        role: v.picklist(['worker', 'asker', 'watcher']),
        state: v.picklist(['joining', 'spare', 'fetching', 'loading', 'ready', 'failed', 'paused']),
        range: v.nullable(blockRange),
        provider: v.nullable(provider),
        pledgeBytes: bytes,
        doneBytes: bytes,
        totalBytes: bytes,
        fetchedBytes: bytes,
        /** Those of them that came from peers. */
        peerBytes: v.optional(bytes),
        stepMs: v.nullable(ms),
        tokens: count(Number.MAX_SAFE_INTEGER),
        hidden: v.boolean(),
        /** Why this device holds what it holds, or what failed. */
        note: text(WIRE_MESSAGE_MAX),
      }),
    ),
    v.maxLength(1_024),
  ),
  links: v.pipe(
    v.array(
      v.object({
        pair: pairId,
        from: peerId,
        to: peerId,
        state: v.picklist(['opening', 'open', 'closed']),
        path: v.nullable(channelPath),
        rttMs: v.nullable(ms),
        relayedBytes: bytes,
      }),
    ),
    v.maxLength(1_024),
  ),
  requests: v.pipe(
    v.array(
      v.object({
        id: text(80),
        state: v.picklist([
          'queued',
          'opening',
          'running',
          'repairing',
          'done',
          'failed',
          'cancelled',
        ]),
        stages: v.pipe(v.array(peerId), v.maxLength(1_000)),
        /**
         * One for each stage: its compute in a lap, and the wire to the next stage: half of that link's round trip
         * when the laps were timed. Empty before the first lap.
         */
        hops: v.pipe(
          v.array(v.object({ computeMs: v.nullable(ms), wireMs: v.nullable(ms) })),
          v.maxLength(1_000),
        ),
        promptTokens: count(PROMPT_MAX_TOKENS),
        tokens: count(1_000_000),
        /** How often another route took over. */
        repairs: count(1_000_000),
        firstTokenMs: v.nullable(ms),
        lapMs: v.nullable(ms),
        /** What a lap was expected to take when the route was chosen; null before that. */
        predictedLapMs: v.nullable(ms),
        /** Every device of the route had been measured before. */
        predictionMeasured: v.boolean(),
        computeMs: v.nullable(ms),
        hopMs: v.nullable(ms),
        error: text(WIRE_MESSAGE_MAX),
      }),
    ),
    v.maxLength(64),
  ),
  /** Activation bytes that passed through the host since it started. */
  relayedBytes: bytes,
  laps: count(Number.MAX_SAFE_INTEGER),
})

export type SwarmSnapshot = v.InferOutput<typeof swarmSnapshot>
