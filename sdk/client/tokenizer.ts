export type ChatMessage = {
  readonly role: 'system' | 'user' | 'assistant'
  readonly content: string
}

/** PORT. Text to token ids and back, and the model's chat template. */
export interface Tokenizer {
  /**
   * Plain text; text that looks like a control token stays text. A begin token is added only where the
   * tokenizer's own post-processor says so. With `control`, spellings of control tokens become those tokens,
   * as in a template: only for text that the operator of this device wrote.
   */
  encode(text: string, options?: { readonly control?: boolean }): number[]
  /** Control tokens are left out. */
  decode(ids: readonly number[]): string
  /** Messages through the model's chat template, with the prompt for the assistant's turn at the end. */
  encodeChat(messages: readonly ChatMessage[]): number[]
}
