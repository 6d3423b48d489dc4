import type { GenerateRequest } from '../../../sdk/client/client-types.ts'
import { GREEDY, type SamplingParams } from '../../../sdk/core/sampling/params.ts'
import { openChain, type LocalChain, type OpenedModel } from '../../../sdk/index.node.ts'
import { pick, whole } from '../../sim/randoms.ts'

/** A question with the answer that it must get. */
export type RealCase = {
  readonly request: GenerateRequest
  readonly expected: readonly number[]
  readonly text: string
}

/** The unsplit model in this process. */
export type Reference = {
  someCase(random: () => number): Promise<RealCase>
  close(): Promise<void>
}

const QUESTIONS = [
  'What is a ring?',
  'Tell me a story about a cat and a boat.',
  'Tell me a story about a fox named Lily in the forest.',
  'Who can see my text?',
  'I am tired. What shall I do? Tell me of a dog, a bird and a brave girl who went to the sea.',
]

/** Long enough to be disturbed in the middle, short enough for the model's context. */
const LEAST_TOKENS = 160
const MOST_TOKENS = 240
/** End tokens are never chosen: every answer is as long as it may be. */
const NEVER = -100

export async function openReference(model: OpenedModel): Promise<Reference> {
  const chain: LocalChain = await openChain(model, 1)
  const logitBias = model.manifest.eosTokenIds.map((id) => [id, NEVER] as const)
  return {
    async someCase(random) {
      const messages = [{ role: 'user', content: pick(random, QUESTIONS) }] as const
      const maxTokens = whole(random, LEAST_TOKENS, MOST_TOKENS)
      const sampling = { ...someSampling(random), logitBias }
      const prompt = model.tokenizer.encodeChat(messages)
      const { ids } = await chain.generate({ prompt, maxTokens, sampling })
      return {
        request: { messages, maxTokens, sampling },
        expected: ids,
        text: model.tokenizer.decode(ids),
      }
    },
    close: () => chain.close(),
  }
}

function someSampling(random: () => number): SamplingParams {
  const seed = whole(random, 0, 1_000_000)
  return pick(random, [
    GREEDY,
    { ...GREEDY, temperature: 0.9, topP: 0.95, seed },
    { ...GREEDY, temperature: 0.7, repetitionPenalty: 1.2, frequencyPenalty: 0.3, seed },
  ])
}
