import type { ChatMessage } from '../../sdk/client/tokenizer.ts'
import { GREEDY } from '../../sdk/core/sampling/params.ts'
import type { LocalChain, OpenedModel } from '../../sdk/index.node.ts'

/** A held-out question: every inner list needs one of its words in the answer. */
export type Question = {
  readonly id: number
  readonly question: string
  /** Messages before the question. */
  readonly turns?: readonly ChatMessage[]
  readonly expect: readonly (readonly string[])[]
}

export type Wrong = {
  readonly id: number
  readonly question: string
  readonly answer: string
  readonly missing: readonly (readonly string[])[]
}
export type Score = {
  readonly model: string
  readonly asked: number
  readonly right: number
  readonly wrong: readonly Wrong[]
}

const ANSWER_TOKENS = 80

/** The lists of expected words of which none stands in the answer as a whole word, whatever the case. */
export function missingWords(answer: string, expect: Question['expect']): (readonly string[])[] {
  const words = ` ${answer.toLowerCase().replace(/[^\p{L}\p{N}'-]+/gu, ' ')} `
  return expect.filter((list) => !list.some((word) => words.includes(` ${word.toLowerCase()} `)))
}

/** Asks every question, greedy, and counts the answers that have what they must. */
export async function score(
  model: OpenedModel,
  chain: LocalChain,
  questions: readonly Question[],
): Promise<Score> {
  const wrong: Wrong[] = []
  for (const question of questions) {
    const messages: ChatMessage[] = [
      ...(question.turns ?? []),
      { role: 'user', content: question.question },
    ]
    const { ids } = await chain.generate({
      prompt: model.tokenizer.encodeChat(messages),
      maxTokens: ANSWER_TOKENS,
      sampling: GREEDY,
    })
    const answer = model.tokenizer.decode(ids)
    const missing = missingWords(answer, question.expect)
    if (missing.length > 0)
      wrong.push({ id: question.id, question: question.question, answer, missing })
  }
  return {
    model: model.name,
    asked: questions.length,
    right: questions.length - wrong.length,
    wrong,
  }
}
