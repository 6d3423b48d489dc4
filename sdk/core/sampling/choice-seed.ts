import { philox2x32 } from './random.ts'

/** Far from every position, so that a choice's seed is no number that an answer draws. */
const CHOICES = 0x6e63_6869

/**
 * The seed of one of several answers to the same prompt: the first keeps the seed, so it is the answer that is
 * had alone; the others differ from it and from each other. `choiceSeed(7, 0) === 7`
 */
export function choiceSeed(seed: number, choice: number): number {
  return choice === 0 ? seed : philox2x32([choice, CHOICES], seed)[0]
}
