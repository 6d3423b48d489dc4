import { lengthOf } from '../session/token-list.ts'
import type { RequestState } from './request-state.ts'
import type { SwarmModel, SwarmState } from './state.ts'

/** How an answer ends with the tokens that it has; null while more are to come. The last stage says so a moment later. */
export function answerEnd(
  { model }: Pick<SwarmState, 'model'>,
  { answer, maxTokens, stopIds }: Pick<RequestState, 'answer' | 'maxTokens' | 'stopIds'>,
): 'stop' | 'length' | null {
  if (answer === null) return null
  if (isEndToken(model, stopIds, answer.token)) return 'stop'
  return lengthOf(answer) >= maxTokens ? 'length' : null
}

/** The model's end tokens, and those that the asker named. */
export function isEndToken(model: SwarmModel, stopIds: readonly number[], token: number): boolean {
  return model.eosTokenIds.includes(token) || stopIds.includes(token)
}

/** Rows of a broken or moved session that hold: the one of the last token was not computed to the end, its outcome is the next token. */
export function rowsThatHold({
  promptLength,
  answer,
}: Pick<RequestState, 'promptLength' | 'answer'>): number {
  return promptLength + lengthOf(answer) - 1
}
