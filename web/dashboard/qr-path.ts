/** Light border that readers need round a code, in modules (ISO/IEC 18004 asks for four). */
export const QUIET_MODULES = 4

/** The dark modules of a QR code as one SVG path. `data`: row by row, not 0 = dark. */
export function qrPath(data: ArrayLike<number>, size: number): string {
  let path = ''
  for (let row = 0; row < size; row++) {
    for (let column = 0; column < size; column++) {
      if (data[row * size + column] === 0) continue
      path += `M${column + QUIET_MODULES} ${row + QUIET_MODULES}h1v1h-1z`
    }
  }
  return path
}
