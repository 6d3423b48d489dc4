import { lengthOf } from '../session/token-list.ts'
import type { RequestState, SwarmState } from './state.ts'

/** Why an answer is over with the tokens that it has, whoever says so; null: more are to come. */
export function answerEnd(
  { model }: Pick<SwarmState, 'model'>,
  { answer, maxTokens, stopIds }: Pick<RequestState, 'answer' | 'maxTokens' | 'stopIds'>,
): 'stop' | 'length' | null {
  const last = answer?.token
  if (last !== undefined && (model.eosTokenIds.includes(last) || stopIds.includes(last)))
    return 'stop'
  return lengthOf(answer) >= maxTokens ? 'length' : null
}
