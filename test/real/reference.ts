import { readFile } from 'node:fs/promises'
import { isRecord } from '../../sdk/core/model/json-fields.ts'

/** What another implementation makes of a model, written by tools/reference/real.py. */
export type RealReference = {
  /** The implementation and its version. */
  readonly by: string
  readonly prompts: readonly {
    readonly text: string
    readonly ids: readonly number[]
    /** What it goes on with, the end of text being no end. */
    readonly greedyIds: readonly number[]
  }[]
  readonly question: string
  /** The question through the chat template; null where the model has none or that side knows none. */
  readonly questionIds: readonly number[] | null
  readonly text: string
  readonly textIds: readonly number[]
  /** The likeliest id after each token of the text but the last. */
  readonly likeliestIds: readonly number[]
  readonly perplexity: number
}

/** @throws Error that says how to make what is missing */
export async function readRealReference(model: string): Promise<RealReference> {
  const path = `${model}.reference.json`
  const content = await readFile(path, 'utf8').catch(() => null)
  if (content === null) {
    throw new Error(
      `there is no ${path}; make it with "python tools/reference/real.py ${model}" (tools/reference/README.md)`,
    )
  }
  const json: unknown = JSON.parse(content)
  if (!isRecord(json) || !Array.isArray(json['prompts'])) throw new Error(`${path} is damaged`)
  const { questionIds } = json
  return {
    by: String(json['by']),
    prompts: json['prompts'].filter(isRecord).map((prompt) => ({
      text: String(prompt['text']),
      ids: idsOf(prompt['ids']),
      greedyIds: idsOf(prompt['greedyIds']),
    })),
    question: String(json['question']),
    questionIds: questionIds === null ? null : idsOf(questionIds),
    text: String(json['text']),
    textIds: idsOf(json['textIds']),
    likeliestIds: idsOf(json['likeliestIds']),
    perplexity: Number(json['perplexity']),
  }
}

function idsOf(value: unknown): number[] {
  if (!Array.isArray(value)) throw new Error('the reference lacks ids')
  return value.map(Number)
}
