import { CrowdError } from '../sdk/core/errors.ts'
import { isEndToken } from '../sdk/core/swarm/answer-end.ts'
import type { SwarmModel } from '../sdk/core/swarm/state.ts'
import type { ClientMessageOf } from '../sdk/protocol/client-to-server.ts'

type Ask = Pick<ClientMessageOf<'ask'>, 'prompt' | 'answered' | 'maxTokens' | 'stopIds'>

/**
 * Whether the answer was complete before its asker lost the host, who only didn't hear so: it ends with an end
 * token of the model or of the asker.
 */
export function wasComplete(model: SwarmModel, { answered = [], stopIds }: Ask): boolean {
  const last = answered.at(-1)
  return last !== undefined && isEndToken(model, stopIds, last)
}

/**
 * An answer can be gone on with where it has room for a token more.
 * @throws CrowdError bad-request
 */
export function checkAnswered(model: SwarmModel, { prompt, answered = [], maxTokens }: Ask): void {
  const room = Math.min(maxTokens, model.contextLength - prompt.length)
  if (answered.length > 0 && answered.length >= room)
    throw new CrowdError(
      'bad-request',
      `the answer has ${answered.length} tokens already and room for ${room}`,
    )
}
