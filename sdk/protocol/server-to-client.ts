import * as v from 'valibot'
import { PROMPT_MAX_TOKENS, STOP_IDS_MAX } from '../core/limits.ts'
import {
  blockRange,
  count,
  finishReason,
  modelId,
  name,
  pairId,
  peerId,
  position,
  requestId,
  requestTimings,
  sampledToken,
  samplingParams,
  sessionId,
  signalData,
  text,
  tokenIds,
  u32,
  wireError,
} from './fields.ts'
import { swarmSnapshot } from './swarm-snapshot.ts'

const iceServers = v.pipe(
  v.array(
    v.object({
      urls: text(300),
      username: v.optional(text(200)),
      credential: v.optional(text(200)),
    }),
  ),
  v.maxLength(8),
)

const servedModel = {
  model: modelId,
  /** The manifest's. */
  revision: text(80),
  /** Path of the manifest on the host, e.g. `/models/crowdtalk-2.6m/manifest.json`; pieces lie at `pieces/` beside it. */
  manifestPath: text(300),
}

/** The hello was accepted. */
const welcome = v.object({
  kind: v.literal('welcome'),
  protocol: count(1_000_000),
  features: v.pipe(v.array(text(40)), v.maxLength(40)),
  peer: peerId,
  name,
  ...servedModel,
})

/** Another model is served from now on; every session of the former one has ended. */
const model = v.object({ kind: v.literal('model'), ...servedModel })

/** The hello, or a later message, was refused; the server closes after a hello's refusal. */
const refused = v.object({ kind: v.literal('refused'), error: wireError })

/** Hold these blocks of the model that is served; a newer assignment replaces an older one. `range: null` = spare, load nothing. */
const assign = v.object({
  kind: v.literal('assign'),
  assignment: u32,
  model: modelId,
  revision: text(80),
  range: v.nullable(blockRange),
  /** For a spare: keep these stored, so that it can step in without a download. */
  keep: v.exactOptional(blockRange),
  /** Why, for people: "weakest span", "newcomer fills layers 4–6". */
  reason: text(200),
  /** So many links to peers that hold pieces of it are ordered with this. */
  sources: v.optional(count(100)),
})

/** Open a link to a peer. A higher attempt of the same pair replaces the lower one. */
const pairOpen = v.object({
  kind: v.literal('pair-open'),
  pair: pairId,
  peer: peerId,
  initiator: v.boolean(),
  attempt: u32,
  /** `pieces`: the initiator fetches pieces from the other end over it, and nothing else. */
  purpose: v.optional(v.picklist(['ring', 'pieces'])),
  iceServers,
})

const pairClose = v.object({ kind: v.literal('pair-close'), pair: pairId, reason: text(200) })

const signal = v.object({
  kind: v.literal('signal'),
  pair: pairId,
  attempt: u32,
  data: signalData,
})

/**
 * To every stage of a route: who is where. `stage` is this peer's index in `stages`. The receiver links
 * itself to the next stage (the last one to the first), then answers session-ready.
 */
const sessionOpen = v.object({
  kind: v.literal('session-open'),
  session: sessionId,
  epoch: u32,
  stage: count(1_000),
  stages: v.pipe(
    v.array(v.object({ peer: peerId, range: blockRange })),
    v.minLength(1),
    v.maxLength(1_000),
  ),
  /** Links of this stage: to the next stage, and for the last one back to the first. null when alone. */
  nextPair: v.nullable(pairId),
  sampling: samplingParams,
  /** To the last stage, and only where its sampler needs them; otherwise empty. */
  history: tokenIds,
  promptLength: count(PROMPT_MAX_TOKENS),
  /** Tokens of the answer that were chosen in earlier epochs. */
  answered: count(PROMPT_MAX_TOKENS),
  maxTokens: count(1_000_000),
  stopIds: v.pipe(tokenIds, v.maxLength(STOP_IDS_MAX)),
  /** Rows of this session from earlier epochs that still hold; what is behind them belongs to another text. */
  valid: position,
})

/** To every stage once all are ready: where its part begins. */
const sessionStart = v.object({
  kind: v.literal('session-start'),
  session: sessionId,
  epoch: u32,
  /** Position of the first row that this stage computes. */
  from: position,
  /** Position of the first row that the next stage must get; below `from` it is what this stage sent before. */
  forward: position,
  /** To the first stage: the tokens from `from` on; otherwise empty. */
  prompt: tokenIds,
})

/** To every stage: nothing more is computed for this session. */
const sessionClose = v.object({
  kind: v.literal('session-close'),
  session: sessionId,
  epoch: u32,
  /** Keep the caches: the next question may begin with the same text. Otherwise free them. */
  retain: v.boolean(),
})

/** To the asker. */
const askAccepted = v.object({
  kind: v.literal('ask-accepted'),
  request: requestId,
  session: sessionId,
  stages: v.pipe(v.array(v.object({ peer: peerId, name, range: blockRange })), v.maxLength(1_000)),
})
const askToken = v.object({
  kind: v.literal('ask-token'),
  request: requestId,
  position,
  sampled: sampledToken,
})
const askEnd = v.object({
  kind: v.literal('ask-end'),
  request: requestId,
  reason: finishReason,
  timings: v.nullable(requestTimings),
  /** With reason `error`. */
  error: v.optional(wireError),
})

/** The state of the swarm, to everyone, at most a few times a second and only when it changed. */
const swarm = v.object({ kind: v.literal('swarm'), swarm: swarmSnapshot })

export const serverMessage = v.variant('kind', [
  welcome,
  model,
  refused,
  assign,
  pairOpen,
  pairClose,
  signal,
  sessionOpen,
  sessionStart,
  sessionClose,
  askAccepted,
  askToken,
  askEnd,
  swarm,
])

export type ServerMessage = v.InferOutput<typeof serverMessage>
export type ServerMessageOf<Kind extends ServerMessage['kind']> = Extract<
  ServerMessage,
  { kind: Kind }
>
