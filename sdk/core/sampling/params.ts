/** How the last stage chooses a token from the logits. Names and meanings follow the OpenAI and Hugging Face APIs. */
export type SamplingParams = {
  /** 0 = greedy. */
  readonly temperature: number
  /** 0 = off. */
  readonly topK: number
  /** 1 = off. */
  readonly topP: number
  /** 0 = off. Keeps tokens with at least this share of the best one's probability. */
  readonly minP: number
  /** 1 = off. CTRL penalty over prompt and answer (arXiv 1909.05858). */
  readonly repetitionPenalty: number
  /** 0 = off. Subtracted once for each token already in the answer. */
  readonly presencePenalty: number
  /** 0 = off. Subtracted for each time a token is already in the answer. */
  readonly frequencyPenalty: number
  /** Unsigned 32-bit. The random number for a position is a pure function of seed and position. */
  readonly seed: number
  /** Added to the logits, [token id, bias]. */
  readonly logitBias: readonly (readonly [number, number])[]
  /** 0 = none: how many alternatives are reported with each token. */
  readonly topLogprobs: number
}

export const GREEDY: SamplingParams = {
  temperature: 0,
  topK: 0,
  topP: 1,
  minP: 0,
  repetitionPenalty: 1,
  presencePenalty: 0,
  frequencyPenalty: 0,
  seed: 0,
  logitBias: [],
  topLogprobs: 0,
}

/** Whether the last stage must know the tokens so far; when not, no token but its own ever reaches it. */
export function needsHistory(params: SamplingParams): boolean {
  return (
    params.repetitionPenalty !== 1 || params.presencePenalty !== 0 || params.frequencyPenalty !== 0
  )
}

/** One chosen token. `logprob` is natural log over the unpenalised distribution at temperature 1. */
export type SampledToken = {
  readonly token: number
  readonly logprob: number
  readonly top: readonly { readonly token: number; readonly logprob: number }[]
}
