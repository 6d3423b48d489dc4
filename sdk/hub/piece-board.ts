/** Which bytes of a file are there, piece by piece. */
export type PieceBoard = {
  readonly count: number
  rangeOf(piece: number): { readonly start: number; readonly end: number }
  isDone(piece: number): boolean
  /** Bytes of a piece that are there from its start; they never become fewer but by `clear`. */
  gotOf(piece: number): number
  reached(piece: number, bytes: number): void
  clear(): void
}

/** @param onChange hears how many bytes are there more, or fewer after `clear` */
export function createPieceBoard(
  fileBytes: number,
  pieceBytes: number,
  onChange: (deltaBytes: number) => void,
): PieceBoard {
  const count = Math.ceil(fileBytes / pieceBytes)
  const got = new Float64Array(count)
  let sum = 0
  const rangeOf = (piece: number) => ({
    start: piece * pieceBytes,
    end: Math.min(fileBytes, (piece + 1) * pieceBytes),
  })
  const gotOf = (piece: number): number => got[piece] ?? 0
  return {
    count,
    rangeOf,
    gotOf,
    isDone(piece) {
      const { start, end } = rangeOf(piece)
      return gotOf(piece) === end - start
    },
    reached(piece, bytes) {
      const more = bytes - gotOf(piece)
      if (more <= 0) return
      got[piece] = bytes
      sum += more
      onChange(more)
    },
    clear() {
      got.fill(0)
      onChange(-sum)
      sum = 0
    },
  }
}
