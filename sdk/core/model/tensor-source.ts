/** A tensor of a weights file. */
export type SourceTensor = {
  readonly name: string
  readonly type: 'f32' | 'f16' | 'bf16'
  readonly dims: readonly number[]
}

/** PORT. Weights by name, read range by range, wherever they lie. */
export interface TensorSource {
  find(name: string): SourceTensor | undefined
  /** Bytes of the tensor, row-major, little endian. The range lies inside the tensor. */
  read(name: string, offset: number, length: number): Promise<Uint8Array<ArrayBuffer>>
}
