import { seededRandom } from '../support/host-fixtures.ts'

/** Streams of random numbers in [0, 1), each by its name: a new use of one doesn't shift the others. */
export type Randoms = { stream(name: string): () => number }

export function createRandoms(seed: number): Randoms {
  return { stream: (name) => seededRandom(mixText(seed, name)) }
}

/** A 32-bit number of a seed and a text (FNV-1a). */
export function mixText(seed: number, text: string): number {
  let hash = (0x811c9dc5 ^ seed) >>> 0
  for (let at = 0; at < text.length; at += 1)
    hash = Math.imul(hash ^ text.charCodeAt(at), 0x01000193) >>> 0
  return hash
}

/** A whole number from `least` to `most`, both included. */
export function whole(random: () => number, least: number, most: number): number {
  return least + Math.floor(random() * (most - least + 1))
}

/** @throws Error on an empty list */
export function pick<T>(random: () => number, list: readonly T[]): T {
  const item = list[Math.floor(random() * list.length)]
  if (item === undefined) throw new Error('nothing to pick from')
  return item
}
