/**
 * What is used of @huggingface/tokenizers. Its own declarations import without file extensions, which
 * Node's module resolution reads as `any`.
 */
declare module '@huggingface/tokenizers' {
  export class Tokenizer {
    constructor(tokenizer: object, config: object)
    encode(
      text: string,
      options: { add_special_tokens: boolean },
    ): { ids: number[]; tokens: string[] }
    /** @throws when `ids` is empty */
    decode(ids: number[]): string
  }
}
