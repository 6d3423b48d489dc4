import type { WeightDtype } from './manifest.ts'

/** A tensor of a weights file. */
export type SourceTensor = {
  readonly name: string
  readonly type: 'f32' | 'f16' | 'bf16'
  readonly dims: readonly number[]
  /** The dtype that holds it exactly, where the file has fewer bits than `type` says; null where none does. */
  readonly keptAs?: WeightDtype | null
}

/** PORT. Weights by name, read range by range, wherever they lie. */
export interface TensorSource {
  find(name: string): SourceTensor | undefined
  /** Bytes of the tensor, row-major, little endian. The range lies inside the tensor. */
  read(name: string, offset: number, length: number): Promise<Uint8Array<ArrayBuffer>>
}
