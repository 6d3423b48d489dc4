import type { WeightDtype } from './manifest.ts'

/** A tensor of a weights file. */
export type SourceTensor = {
  readonly name: string
  readonly type: 'f32' | 'f16' | 'bf16'
  readonly dims: readonly number[]
  /** What it is best kept as, where the file has fewer bits than `type` says. */
  readonly keptAs?: WeightDtype
}

/** PORT. Weights by name, read range by range, wherever they lie. */
export interface TensorSource {
  find(name: string): SourceTensor | undefined
  /** Bytes of the tensor, row-major, little endian. The range lies inside the tensor. */
  read(name: string, offset: number, length: number): Promise<Uint8Array<ArrayBuffer>>
}
