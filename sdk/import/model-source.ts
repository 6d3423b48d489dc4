import type { TensorSource } from '../core/model/tensor-source.ts'

/** A published model that is opened but not read, whatever it is stored as. */
export type ModelSource = {
  /** What it is called where nobody names it. */
  readonly name: string
  /** config.json in the Hugging Face layout, parsed. */
  readonly config: unknown
  /** generation_config.json, parsed; undefined where there is none. */
  readonly generationConfig: unknown
  /** Tokenizer and settings files that are there, by name. */
  readonly files: ReadonlyMap<string, () => Promise<Uint8Array>>
  /** By the names that the Hugging Face layout gives them. */
  readonly weights: TensorSource
  /**
   * Tensors of which none may be left unread, by those names, and what the file calls each. Absent where files
   * commonly hold more than the model.
   */
  readonly mustBeRead?: ReadonlyMap<string, string>
  /** Changes when any source file does. */
  readonly fingerprint: string
  readonly close: () => Promise<void>
}
