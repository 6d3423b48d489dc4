import type { ModelId } from '../core/ids.ts'
import type { AskedDtype } from '../core/model/onnx/export-files.ts'

export type ImportOptions = {
  /** Default: the name of the directory or file. */
  readonly id?: ModelId
  /**
   * Default: what the layers are stored as, f16 for bf16; where none of ours holds that exactly (most GGUF types), f16
   * for a small model and q8 for others.
   */
  readonly dtype?: AskedDtype
  /** Tokens; default: the model's own `max_position_embeddings`, at most `CONTEXT_DEFAULT_MAX`. */
  readonly contextLength?: number
  /** Hears of each block once its pieces are stored. */
  readonly onProgress?: (progress: ImportProgress) => void
}

export type ImportProgress = { readonly doneBlocks: number; readonly totalBlocks: number }
