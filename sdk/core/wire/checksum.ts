const START = 0x811c9dc5
const MULTIPLIER = 0x9e3779b1

/**
 * Checksum of 32-bit words: multiply and fold, word by word. Any change of a single word is always seen,
 * and unlike plain FNV over words a pair of flipped sign bits is seen too. One multiplication a word:
 * about 1 µs per 4 kB hidden state. Data channels and sockets have their own checks against the network; this
 * one is against our own faults (wrong offset, buffer reused too early), which nobody else would notice.
 *
 * @param words the words to add
 * @param seed the result of the words before, so that parts can be chained
 */
export function checksumWords(words: Uint32Array, seed: number = START): number {
  let hash = seed
  for (let index = 0; index < words.length; index += 1) {
    hash = Math.imul(hash ^ words[index]!, MULTIPLIER)
    hash ^= hash >>> 15
  }
  return hash >>> 0
}

/** True when every 32-bit float is finite; looks at the exponent bits, so no float is converted. */
export function allFinite(words: Uint32Array): boolean {
  for (let index = 0; index < words.length; index += 1) {
    if ((words[index]! & 0x7f800000) === 0x7f800000) return false
  }
  return true
}
