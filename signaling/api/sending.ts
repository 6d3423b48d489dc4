import type { EventQueue } from '../../sdk/client/event-queue.ts'
import type { RequestState } from '../../sdk/core/swarm/request-state.ts'
import type { SwarmState } from '../../sdk/core/swarm/state.ts'
import type { AnswerHead } from './answer-bodies.ts'
import type { ApiRequest } from './parse-request.ts'
import type { ChoiceEvent } from './run-choices.ts'

/** What both ways of sending an answer need. */
export type Sending = {
  readonly head: AnswerHead
  readonly request: ApiRequest
  readonly queue: EventQueue<ChoiceEvent>
  /** Over all prompts, each counted once. */
  readonly promptTokens: number
  readonly choices: number
  state(): SwarmState
  /** The swarm's record of the first choice. */
  first(): RequestState | undefined
  later(ms: number, task: () => void): () => void
}
