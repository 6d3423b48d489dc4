import { needsHistory, type SampledToken } from '../core/sampling/params.ts'
import { createLapMeter } from '../core/session/lap-meter.ts'
import type { FinishReason } from '../core/session/request.ts'
import type { ClientMessage } from '../protocol/client-to-server.ts'
import type { ServerMessageOf } from '../protocol/server-to-client.ts'
import type { StageStep } from '../runtime/stage-runner.ts'

/** How often the last stage tells the host its timings while an answer runs. */
const TIMINGS_MS = 1_000

export type LastStage = {
  sampleRequest(): NonNullable<StageStep['sample']>
  /** Records the choice; the reason when the answer ends with it. */
  chosen(sampled: SampledToken): EndReason | null
  /** Tells the host about the choice. */
  tell(choice: Choice): void
}

type EndReason = Extract<FinishReason, 'stop' | 'length'>
type Choice = {
  readonly sampled: SampledToken
  readonly position: number
  /** Of the whole lap. */
  readonly computeMicros: number
  readonly reason: EndReason | null
}

/** What only the last stage keeps: the answer so far, where it ends, and how long laps take. */
export function createLastStage(
  deps: {
    readonly eosTokenIds: readonly number[]
    /** To the host. */
    tell(message: ClientMessage): void
    now(): number
  },
  order: ServerMessageOf<'session-open'>,
): LastStage {
  const head = { session: order.session, epoch: order.epoch }
  const stops = new Set([...deps.eosTokenIds, ...order.stopIds])
  const history = needsHistory(order.sampling) ? [...order.history] : null
  const meter = createLapMeter(order.stages.length)
  let tokens = order.answered
  let toldAt = 0

  function tellTimings(now: number): void {
    toldAt = now
    deps.tell({
      kind: 'session-timings',
      ...head,
      timings: {
        promptTokens: order.promptLength,
        firstTokenMs: 0,
        ...meter.timings(),
        tokens,
      },
    })
  }

  return {
    sampleRequest: () => ({
      params: order.sampling,
      history: history === null ? new Int32Array() : Int32Array.from(history),
      promptLength: order.promptLength,
    }),
    chosen(sampled) {
      tokens += 1
      history?.push(sampled.token)
      if (stops.has(sampled.token)) return 'stop'
      return tokens >= order.maxTokens ? 'length' : null
    },
    tell({ sampled, position, computeMicros, reason }) {
      const now = deps.now()
      meter.lap(now, computeMicros / 1_000)
      deps.tell({ kind: 'session-token', ...head, position, sampled })
      if (reason !== null || now - toldAt > TIMINGS_MS) tellTimings(now)
      if (reason !== null) deps.tell({ kind: 'session-end', ...head, reason })
    },
  }
}
