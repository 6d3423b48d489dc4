import large from '../golden/crowdtalk-2.6m.json'
import small from '../golden/crowdtalk-0.3m.json'
import type { ChatMessage } from '../../sdk/client/tokenizer.ts'

/** One prompt as PyTorch's LlamaForCausalLM answers it, in Python: an implementation that isn't ours. */
export type GoldenCase = {
  /** The text that was encoded; for `messages`, what the chat template made of them. */
  readonly prompt: string
  readonly messages?: readonly ChatMessage[]
  readonly promptIds: readonly number[]
  /** Greedy, up to the end token. */
  readonly ids: readonly number[]
  /** Of the ids, control tokens left out. */
  readonly text: string
  /** Smallest lead of the best logit over the second along the way. */
  readonly minGap: number
  /** Of the token after the prompt. */
  readonly logits?: readonly number[]
  /** After each layer, at the prompt's last position. */
  readonly hidden?: readonly (readonly number[])[]
}

export type Golden = {
  readonly cases: readonly GoldenCase[]
  /** The one with logits and hidden states. */
  readonly detailed: GoldenCase & Required<Pick<GoldenCase, 'logits' | 'hidden'>>
  /** The one with the most tokens in its prompt. */
  readonly longest: GoldenCase
}

/** The golden cases of a built-in model. */
export function goldenOf(name: string): Golden {
  // Cast: the files are ours and committed.
  const cases = (name === 'crowdtalk-0.3m' ? small : large) as GoldenCase[]
  const detailed = cases.find(isDetailed)
  const longest = cases.toSorted((a, b) => b.promptIds.length - a.promptIds.length)[0]
  if (detailed === undefined || longest === undefined) throw new Error(`${name}: no details`)
  return { cases, detailed, longest }
}

function isDetailed(entry: GoldenCase): entry is Golden['detailed'] {
  return entry.logits !== undefined && entry.hidden !== undefined
}
