import * as v from 'valibot'
import type { ModelId, PairId, PeerId, PieceHash, RequestId, SessionId } from '../core/ids.ts'
import { CHUNK_BYTES, NAME_MAX_CHARS, PROMPT_MAX_TOKENS, WIRE_MESSAGE_MAX } from '../core/limits.ts'

/** Building blocks of both schemas. Every string, list and number has a maximum. */
const id = <Id extends string>() =>
  v.pipe(
    v.string(),
    v.regex(/^[\w.:-]{1,80}$/),
    v.transform((text) => text as Id),
  )

export const peerId = id<PeerId>()
export const pairId = id<PairId>()
export const requestId = id<RequestId>()
export const modelId = id<ModelId>()
export const pieceHash = v.pipe(
  v.string(),
  v.regex(/^[0-9a-f]{64}$/),
  v.transform((text) => text as PieceHash),
)

export const count = (max: number) =>
  v.pipe(v.number(), v.integer(), v.minValue(0), v.maxValue(max))
export const u32 = count(0xffff_ffff)
export const sessionId = v.pipe(
  u32,
  v.transform((value) => value as SessionId),
)
export const bytes = count(Number.MAX_SAFE_INTEGER)
export const ms = v.pipe(v.number(), v.minValue(0), v.maxValue(86_400_000))
export const text = (max: number) => v.pipe(v.string(), v.maxLength(max))
export const name = text(NAME_MAX_CHARS)

export const tokenId = count(10_000_000)
export const tokenIds = v.pipe(v.array(tokenId), v.maxLength(PROMPT_MAX_TOKENS))
export const position = count(PROMPT_MAX_TOKENS)

export const blockRange = v.pipe(
  v.object({ start: count(1_000), end: count(1_001) }),
  v.check((range) => range.start < range.end, 'start must be below end'),
)

/** An SDP or ICE object, opaque to the server: JSON of at most 64 kB. */
export const signalData = v.pipe(
  v.unknown(),
  v.check((value) => (JSON.stringify(value) ?? '').length <= CHUNK_BYTES, 'signal too large'),
)

export const provider = v.picklist(['webgpu', 'wasm', 'cpu', 'cuda'])
export const channelPath = v.picklist(['direct', 'turn', 'relay', 'local'])

/** Code and message of a CrowdError. The code is checked when it is rebuilt, so that new codes don't break old peers. */
export const wireError = v.object({ code: text(40), message: text(WIRE_MESSAGE_MAX) })

const finite = v.pipe(v.number(), v.finite())
export const samplingParams = v.object({
  temperature: v.pipe(finite, v.minValue(0), v.maxValue(10)),
  topK: count(1_000_000),
  topP: v.pipe(finite, v.gtValue(0), v.maxValue(1)),
  minP: v.pipe(finite, v.minValue(0), v.maxValue(1)),
  repetitionPenalty: v.pipe(finite, v.gtValue(0), v.maxValue(10)),
  presencePenalty: v.pipe(finite, v.minValue(-2), v.maxValue(2)),
  frequencyPenalty: v.pipe(finite, v.minValue(-2), v.maxValue(2)),
  seed: u32,
  logitBias: v.pipe(
    v.array(
      v.pipe(v.tuple([tokenId, v.pipe(finite, v.minValue(-100), v.maxValue(100))]), v.readonly()),
    ),
    v.maxLength(1_024),
    v.readonly(),
  ),
  topLogprobs: count(20),
})

export const sampledToken = v.object({
  token: tokenId,
  logprob: v.number(),
  top: v.pipe(
    v.array(v.object({ token: tokenId, logprob: v.number() })),
    v.maxLength(20),
    v.readonly(),
  ),
})

export const finishReason = v.picklist(['stop', 'length', 'cancelled', 'error'])

/** Where the time of a request went; means over its laps. */
export const requestTimings = v.object({
  promptTokens: count(PROMPT_MAX_TOKENS),
  /** Tokens chosen by the ring, the end token included. */
  tokens: count(PROMPT_MAX_TOKENS),
  /** From the start order to the first token, ms. */
  firstTokenMs: ms,
  lapMs: ms,
  /** Sum over the stages of one lap, ms. */
  computeMs: ms,
  /** (lapMs − computeMs) ÷ hops, ms; 0 for a single stage. */
  hopMs: ms,
  hops: count(1_000),
})
