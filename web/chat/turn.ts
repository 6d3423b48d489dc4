import type { CrowdError } from '../../sdk/core/errors.ts'
import type { FinishReason, GenerateEvent, RequestTimings } from '../../sdk/client/client-types.ts'
import type { ChatMessage } from '../../sdk/client/tokenizer.ts'
import type { SwarmSnapshot } from '../../sdk/protocol/swarm-snapshot.ts'

type TurnStage = Extract<GenerateEvent, { kind: 'accepted' }>['stages'][number]

type TurnModel = Pick<SwarmSnapshot['model'], 'id' | 'layerCount' | 'contextLength'>

/** One question and its answer; a new object on every change. Times are of the page's clock, ms. */
export type Turn = {
  readonly id: number
  readonly question: string
  /** That was asked; the host may serve another one by now. */
  readonly model: TurnModel
  readonly answer: string
  readonly phase: 'waiting' | 'writing' | 'done' | 'stopped' | 'failed'
  /** The connection to the host is lost in the middle, or is back and the ring was asked to go on. */
  readonly interruption: 'lost' | 'resumed' | null
  readonly stages: readonly TurnStage[]
  readonly tokens: number
  readonly askedAtMs: number
  readonly firstAtMs: number | null
  readonly lastAtMs: number | null
  readonly reason: FinishReason | null
  readonly timings: RequestTimings | null
  readonly error: CrowdError | null
}

export function startTurn(
  id: number,
  asked: Pick<Turn, 'question' | 'model'>,
  nowMs: number,
): Turn {
  return {
    id,
    ...asked,
    answer: '',
    phase: 'waiting',
    interruption: null,
    stages: [],
    tokens: 0,
    askedAtMs: nowMs,
    firstAtMs: null,
    lastAtMs: null,
    reason: null,
    timings: null,
    error: null,
  }
}

export function applyEvent(turn: Turn, event: GenerateEvent, nowMs: number): Turn {
  switch (event.kind) {
    case 'accepted':
      return { ...turn, interruption: null, stages: event.stages }
    case 'interrupted':
      return { ...turn, interruption: 'lost' }
    case 'resumed':
      return { ...turn, interruption: 'resumed' }
    case 'delta':
      return {
        ...turn,
        phase: 'writing',
        answer: turn.answer + event.text,
        tokens: turn.tokens + 1,
        firstAtMs: turn.firstAtMs ?? nowMs,
        lastAtMs: nowMs,
      }
    case 'end':
      return {
        ...turn,
        phase: event.reason === 'cancelled' ? 'stopped' : 'done',
        interruption: null,
        reason: event.reason,
        timings: event.timings,
        tokens: event.timings?.tokens ?? turn.tokens,
      }
  }
}

/** What was written stays; a stop on request is no failure. */
export function failTurn(turn: Turn, error: CrowdError): Turn {
  const over = { ...turn, interruption: null }
  if (error.code === 'aborted') return { ...over, phase: 'stopped', reason: 'cancelled' }
  return { ...over, phase: 'failed', reason: 'error', error }
}

export function isRunning(turn: Turn | undefined): boolean {
  return turn !== undefined && (turn.phase === 'waiting' || turn.phase === 'writing')
}

/**
 * The whole conversation as the model gets it. Nothing is ever trimmed; a question that got no text at all
 * is left out, since chat templates want the roles to alternate.
 */
export function toMessages(turns: readonly Turn[], question: string): ChatMessage[] {
  const messages: ChatMessage[] = []
  for (const turn of turns) {
    if (turn.answer === '') continue
    messages.push({ role: 'user', content: turn.question })
    messages.push({ role: 'assistant', content: turn.answer })
  }
  return [...messages, { role: 'user', content: question }]
}
