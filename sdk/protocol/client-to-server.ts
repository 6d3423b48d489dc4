import * as v from 'valibot'
import {
  bytes,
  channelPath,
  count,
  finishReason,
  modelId,
  ms,
  name,
  pairId,
  peerId,
  pieceHash,
  position,
  provider,
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

/** First message on every connection. `role`: a worker lends compute, an asker wants text, a watcher looks on. */
const hello = v.object({
  kind: v.literal('hello'),
  protocol: count(1_000_000),
  features: v.pipe(v.array(text(40)), v.maxLength(40)),
  role: v.picklist(['worker', 'asker', 'watcher']),
  /** This device's own identity and a secret proving it on reconnect; both random, kept by the tab. */
  peer: peerId,
  token: text(80),
  name,
  /** The pool's secret from the join URL's fragment; empty in an open pool. */
  secret: text(200),
})

/** What a worker gives and can do; sent after the welcome and whenever it changes. */
const pledge = v.object({
  kind: v.literal('pledge'),
  /** Weights in the provider's format plus KV caches. 0 = paused. */
  memoryBytes: bytes,
  provider,
  threads: count(1_024),
  /** Of the model that this device knows to be served. */
  revision: text(80),
  /** Pieces of that model already stored here. */
  cached: v.pipe(v.array(pieceHash), v.maxLength(4_096)),
  hidden: v.boolean(),
})

/** Progress on an assignment; `state: ready` counts for coverage. */
const stageState = v.object({
  kind: v.literal('stage-state'),
  assignment: u32,
  state: v.picklist(['fetching', 'loading', 'ready', 'failed']),
  doneBytes: bytes,
  totalBytes: bytes,
  /** Bytes that came over the network; the rest was stored here already. */
  fetchedBytes: bytes,
  /** Those of them that came from peers. */
  peerBytes: v.optional(bytes),
  error: v.optional(wireError),
})

/** Measured once loaded and while serving, about once a second when something changed. */
const stageStats = v.object({
  kind: v.literal('stage-stats'),
  assignment: u32,
  steps: count(Number.MAX_SAFE_INTEGER),
  tokens: count(Number.MAX_SAFE_INTEGER),
  /** Mean of the recent decode steps, ms; null before the stage is loaded. */
  stepMs: v.nullable(ms),
})

const signal = v.object({
  kind: v.literal('signal'),
  pair: pairId,
  attempt: u32,
  data: signalData,
})

const linkState = v.object({
  kind: v.literal('link-state'),
  pair: pairId,
  attempt: u32,
  state: v.picklist(['open', 'closed']),
  path: channelPath,
  rttMs: v.nullable(ms),
  /** Why it closed, where the other end of a piece link sent wrong bytes. */
  error: v.optional(wireError),
})

/** Asks for text. The prompt is token ids, so the host needs no tokenizer to serve it. */
const ask = v.object({
  kind: v.literal('ask'),
  request: requestId,
  model: modelId,
  /** Of the manifest whose tokenizer made the prompt. */
  revision: v.optional(text(80)),
  prompt: v.pipe(tokenIds, v.minLength(1)),
  /** Goes on with an answer that lost its host: what the asker has of it. Absent: a new question. */
  answered: v.optional(tokenIds),
  maxTokens: count(1_000_000),
  /** Besides the model's own end tokens. */
  stopIds: v.pipe(tokenIds, v.maxLength(64)),
  sampling: samplingParams,
})

const cancel = v.object({ kind: v.literal('cancel'), request: requestId })

/** A stage is linked and ready for this session and epoch, and what it has of it from earlier epochs, in rows. */
const sessionReady = v.object({
  kind: v.literal('session-ready'),
  session: sessionId,
  epoch: u32,
  /** In its caches, from position 0 on. */
  cached: position,
  /** Of its output that it can send again, from position 0 on. */
  kept: position,
})

/** From the last stage, one a token; `position` is the position that the token takes. */
const sessionToken = v.object({
  kind: v.literal('session-token'),
  session: sessionId,
  epoch: u32,
  position,
  sampled: sampledToken,
})

/** From the last stage: no more tokens. */
const sessionEnd = v.object({
  kind: v.literal('session-end'),
  session: sessionId,
  epoch: u32,
  reason: finishReason,
})

/** From the last stage, which sees whole laps; about once a second and before the end. `firstTokenMs` is the host's to fill. */
const sessionTimings = v.object({
  kind: v.literal('session-timings'),
  session: sessionId,
  epoch: u32,
  timings: requestTimings,
})

/** From every stage, at its first decode step of a session and now and then after: the mean of them, ms. */
const sessionStep = v.object({
  kind: v.literal('session-step'),
  session: sessionId,
  epoch: u32,
  computeMs: ms,
})

const sessionFailed = v.object({
  kind: v.literal('session-failed'),
  session: sessionId,
  epoch: u32,
  error: wireError,
})

/** Every second: this device is there. Where it stands in its sessions tells a slow step from a lost frame. */
const beat = v.object({
  kind: v.literal('beat'),
  /** A step is being computed. */
  computing: v.boolean(),
  sessions: v.pipe(
    v.array(v.object({ session: sessionId, epoch: u32, position })),
    v.maxLength(64),
  ),
  /** The last one for now: the browser is about to freeze the page. The next beat says that it's awake. */
  asleep: v.optional(v.boolean()),
})

/** The device is going: closes politely. */
const leave = v.object({ kind: v.literal('leave') })

/** One schema for everything a client may send. Unknown fields are dropped, unknown kinds refused. */
export const clientMessage = v.variant('kind', [
  hello,
  pledge,
  stageState,
  stageStats,
  signal,
  linkState,
  ask,
  cancel,
  sessionReady,
  sessionToken,
  sessionEnd,
  sessionTimings,
  sessionStep,
  sessionFailed,
  beat,
  leave,
])

export type ClientMessage = v.InferOutput<typeof clientMessage>
export type ClientMessageOf<Kind extends ClientMessage['kind']> = Extract<
  ClientMessage,
  { kind: Kind }
>
