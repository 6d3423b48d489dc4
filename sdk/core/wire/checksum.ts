const START = 0x811c9dc5
const MULTIPLIER = 0x9e3779b1

/**
 * Checksum of a frame: its header's words but the checksum's own, one after another, then the payload in four lanes
 * that don't wait for each other. Any change of a single word is always seen; unlike plain FNV over words, a
 * pair of flipped sign bits is seen too. About 1 µs per 4 kB hidden state. The network has its own checks;
 * this one is against our own faults (wrong offset, a buffer reused too early), which nobody else would notice.
 *
 * @param words the whole frame as little-endian 32-bit words
 */
export function frameChecksum(words: Uint32Array, headerWords: number, ownWord: number): number {
  let hash = START
  for (let index = 0; index < headerWords; index += 1) {
    if (index !== ownWord) hash = mix(hash, words[index]!)
  }
  let [a, b, c, d] = [hash, hash + 1, hash + 2, hash + 3]
  const lanesEnd = words.length - ((words.length - headerWords) % 4)
  for (let index = headerWords; index < lanesEnd; index += 4) {
    a = mix(a, words[index]!)
    b = mix(b, words[index + 1]!)
    c = mix(c, words[index + 2]!)
    d = mix(d, words[index + 3]!)
  }
  for (let index = lanesEnd; index < words.length; index += 1) a = mix(a, words[index]!)
  return mix(mix(mix(a, b), c), d) >>> 0
}

function mix(hash: number, word: number): number {
  const product = Math.imul(hash ^ word, MULTIPLIER)
  return product ^ (product >>> 15)
}

/** True when every 32-bit float is finite; looks at the exponent bits, so no float is converted. */
export function allFinite(words: Uint32Array, start: number): boolean {
  for (let index = start; index < words.length; index += 1) {
    if ((words[index]! & 0x7f800000) === 0x7f800000) return false
  }
  return true
}
