import type { ChatMessage } from '../../sdk/client/tokenizer.ts'
import { GREEDY } from '../../sdk/core/sampling/params.ts'
import { openChain, openModel, type LocalChain, type OpenedModel } from '../../sdk/index.node.ts'
import list from '../../tools/builtin-model/questions.json'

/** A held-out question: every inner list of `expect` needs one of its words in the answer, and no word of `reject` may stand there. */
export type Question = {
  readonly id: number
  readonly question: string
  /** Messages before the question. */
  readonly turns?: readonly ChatMessage[]
  readonly expect: readonly (readonly string[])[]
  /** Words of which any makes the answer wrong. */
  readonly reject?: readonly string[]
}

export type Wrong = {
  readonly id: number
  readonly question: string
  readonly answer: string
  readonly missing: readonly (readonly string[])[]
  readonly rejected: readonly string[]
}
export type Score = {
  readonly model: string
  readonly asked: number
  readonly right: number
  readonly wrong: readonly Wrong[]
}

const ANSWER_TOKENS = 80

/** The held-out questions by which the built-in model is accepted. */
// Cast: the file is ours and committed; an import knows no literal types.
export const QUESTIONS = list as readonly Question[]
/** How many of them it must answer right. */
export const RIGHT_MIN = 80

/** The lists of expected words of which none is a word of the answer, whatever the case. Words are as `\w+` finds them in Python's score.py. */
export function missingWords(answer: string, expect: Question['expect']): (readonly string[])[] {
  const words = new Set(answer.toLowerCase().match(/[\p{L}\p{N}_]+/gu))
  return expect.filter((list) => !list.some((word) => words.has(word.toLowerCase())))
}

/** The words that must not stand in the answer and do. */
export function rejectedWords(answer: string, reject: Question['reject'] = []): readonly string[] {
  return reject.filter((word) => missingWords(answer, [[word]]).length === 0)
}

/** Asks a model every question, greedy, and counts the answers that have what they must. Its blocks are kept under `dataDir`. */
export async function score(
  name: string,
  questions: readonly Question[],
  dataDir: string,
): Promise<Score> {
  const model = await openModel(name, dataDir)
  const chain = await openChain(model, 1)
  try {
    const wrong: Wrong[] = []
    for (const question of questions) {
      const answer = await answerTo(question, model, chain)
      const missing = missingWords(answer, question.expect)
      const rejected = rejectedWords(answer, question.reject)
      if (missing.length > 0 || rejected.length > 0)
        wrong.push({ id: question.id, question: question.question, answer, missing, rejected })
    }
    const asked = questions.length
    return { model: model.name, asked, right: asked - wrong.length, wrong }
  } finally {
    await chain.close()
  }
}

async function answerTo(
  { question, turns = [] }: Question,
  model: OpenedModel,
  chain: LocalChain,
): Promise<string> {
  const messages: ChatMessage[] = [...turns, { role: 'user', content: question }]
  const { ids } = await chain.generate({
    prompt: model.tokenizer.encodeChat(messages),
    maxTokens: ANSWER_TOKENS,
    sampling: GREEDY,
  })
  return model.tokenizer.decode(ids)
}
