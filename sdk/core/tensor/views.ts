/**
 * Typed views of bytes. A view needs an aligned offset; where the bytes don't have one they're copied.
 * Little endian, as every platform that runs this product.
 */
export function asFloats(bytes: Uint8Array): Float32Array<ArrayBuffer> {
  const { buffer, byteOffset } = aligned(bytes, 4)
  return new Float32Array(buffer, byteOffset, bytes.byteLength >>> 2)
}

export function asHalves(bytes: Uint8Array): Uint16Array<ArrayBuffer> {
  const { buffer, byteOffset } = aligned(bytes, 2)
  return new Uint16Array(buffer, byteOffset, bytes.byteLength >>> 1)
}

export function asBytes(view: ArrayBufferView<ArrayBuffer>): Uint8Array<ArrayBuffer> {
  return new Uint8Array(view.buffer, view.byteOffset, view.byteLength)
}

function aligned(bytes: Uint8Array, size: number): Uint8Array<ArrayBuffer> {
  const { buffer, byteOffset, byteLength } = bytes
  if (buffer instanceof ArrayBuffer && byteOffset % size === 0) {
    return new Uint8Array(buffer, byteOffset, byteLength)
  }
  return new Uint8Array(bytes)
}
