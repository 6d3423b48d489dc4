/** How the columns of a quantised matrix are packed and share scales. */
export type BlockShape = {
  readonly rows: number
  readonly columns: number
  readonly bits: number
  readonly blockSize: number
}

export type BlockMatrix = {
  /** Unsigned values, low bits first; a row's last block may be padded. */
  readonly packed: Uint8Array
  /** [rows, blocks]. */
  readonly scales: Float32Array
  /** Packed like values, a row of blocks after another, or one f32 for each block; null: 2^(bits-1). */
  readonly zeros: Uint8Array | Float32Array | null
  readonly shape: BlockShape
}

/**
 * The f32 values [rows, columns] of a matrix that is quantised in blocks of columns, as MatMulNBits and
 * GatherBlockQuantized of ONNX Runtime have it (bits 2, 4 or 8): (value - zero point) * scale.
 */
export function dequantizeBlocks(matrix: BlockMatrix): Float32Array<ArrayBuffer> {
  const { packed, scales, zeros, shape } = matrix
  const { rows, columns, bits, blockSize } = shape
  const blocks = Math.ceil(columns / blockSize)
  // Either all rows fill their blocks, or the last block is stored in full.
  const rowBytes = rows === 0 ? 0 : packed.length / rows
  const zeroBytes = Math.ceil((blocks * bits) / 8)
  const perByte = 8 / bits
  const mask = 2 ** bits - 1
  const unpack = (bytes: Uint8Array, start: number, index: number): number => {
    const byte = bytes[start + Math.floor(index / perByte)] ?? 0
    return (byte >>> ((index % perByte) * bits)) & mask
  }
  const zeroOf = (row: number, block: number): number => {
    if (zeros === null) return 2 ** (bits - 1)
    if (zeros instanceof Float32Array) return zeros[row * blocks + block] ?? 0
    return unpack(zeros, row * zeroBytes, block)
  }
  const out = new Float32Array(rows * columns)
  for (let row = 0; row < rows; row++) {
    for (let block = 0; block < blocks; block++) {
      const scale = scales[row * blocks + block] ?? 0
      const zero = zeroOf(row, block)
      const end = Math.min(columns, (block + 1) * blockSize)
      for (let column = block * blockSize; column < end; column++) {
        out[row * columns + column] = (unpack(packed, row * rowBytes, column) - zero) * scale
      }
    }
  }
  return out
}
