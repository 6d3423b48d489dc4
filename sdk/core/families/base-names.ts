import type { SourceTensor, TensorSource } from '../model/tensor-source.ts'

/**
 * Weights that also answer to other spellings of a name: published files leave out the base model's prefix
 * (GPT-2, BLOOM), or put the text model of a larger one under `language_model`.
 */
export function baseNames(source: TensorSource): TensorSource {
  const spelled = (name: string): string =>
    spellings(name).find((candidate) => source.find(candidate)) ?? name
  return {
    find: (name): SourceTensor | undefined => source.find(spelled(name)),
    read: (name, offset, length) => source.read(spelled(name), offset, length),
  }
}

function spellings(name: string): string[] {
  return [
    name,
    name.replace(/^(model|transformer)\./, ''),
    `language_model.${name}`,
    name.replace(/^model\./, 'model.language_model.'),
  ]
}
