const MULTIPLIER = 0xd256d193
const WEYL = 0x9e3779b9
const ROUNDS = 10
const TWO_26 = 2 ** 26
const TWO_MINUS_53 = 2 ** -53

/** High 32 bits of the product of two unsigned 32-bit numbers, by halves, since doubles hold 53 bits. */
function multiplyHigh(a: number, b: number): number {
  const aLow = a & 0xffff
  const aHigh = a >>> 16
  const bLow = b & 0xffff
  const bHigh = b >>> 16
  const cross = aHigh * bLow + ((aLow * bLow) >>> 16)
  const middle = (cross & 0xffff) + aLow * bHigh
  // cross and middle stay below 2^33, so division, not a shift, takes their upper parts.
  return (aHigh * bHigh + Math.floor(cross / 0x10000) + Math.floor(middle / 0x10000)) >>> 0
}

/**
 * Philox 2x32 with 10 rounds (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", 2011): a
 * block cipher on a counter, so any number of the sequence is had without the ones before it.
 */
export function philox2x32(
  counter: readonly [number, number],
  key: number,
): [low: number, high: number] {
  let low = counter[0] >>> 0
  let high = counter[1] >>> 0
  let roundKey = key >>> 0
  for (let round = 0; round < ROUNDS; round++) {
    const nextLow = (multiplyHigh(MULTIPLIER, low) ^ roundKey ^ high) >>> 0
    high = Math.imul(MULTIPLIER, low) >>> 0
    low = nextLow
    roundKey = (roundKey + WEYL) >>> 0
  }
  return [low, high]
}

/**
 * The random number that chooses the token at `position`: uniform in [0, 1), 53 bits, a pure function of
 * both, so a repaired or speculated run draws what the first run drew. `randomAt(7, 12) === randomAt(7, 12)`.
 */
export function randomAt(seed: number, position: number): number {
  const [low, high] = philox2x32([position, 0], seed)
  return ((low >>> 5) * TWO_26 + (high >>> 6)) * TWO_MINUS_53
}
