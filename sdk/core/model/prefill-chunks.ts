/** A piece of a prompt that goes through the chain as one step. */
export type PrefillChunk = {
  readonly position: number
  readonly ids: Int32Array
  readonly last: boolean
}

/** Cuts a prompt into steps of at most `size` tokens; only after the last one a token is sampled. */
export function prefillChunks(prompt: readonly number[], size: number): PrefillChunk[] {
  const chunks: PrefillChunk[] = []
  for (let position = 0; position < prompt.length; position += size) {
    const end = Math.min(position + size, prompt.length)
    chunks.push({
      position,
      ids: Int32Array.from(prompt.slice(position, end)),
      last: end === prompt.length,
    })
  }
  return chunks
}
