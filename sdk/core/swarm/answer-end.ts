import { lengthOf } from '../session/token-list.ts'
import type { RequestState, SwarmState } from './state.ts'

/** How an answer ends with the tokens that it has; null while more are to come. The last stage says so a moment later. */
export function answerEnd(
  { model }: Pick<SwarmState, 'model'>,
  { answer, maxTokens, stopIds }: Pick<RequestState, 'answer' | 'maxTokens' | 'stopIds'>,
): 'stop' | 'length' | null {
  if (answer === null) return null
  if (model.eosTokenIds.includes(answer.token) || stopIds.includes(answer.token)) return 'stop'
  return lengthOf(answer) >= maxTokens ? 'length' : null
}
