/**
 * Token ids by falling score (equal scores by rising id), sorted only as far as asked: making the heap is
 * linear in the vocabulary, each further candidate costs its logarithm. Most draws look at a few dozen.
 */
export type CandidateHeap = {
  /** Starts over with the present scores; nothing taken yet. */
  start(): void
  /** Takes the `wanted` best and any that tie with the last of them; returns how many. */
  takeBest(wanted: number): number
  /** The candidate of that rank, 0 = best; takes as many as needed. */
  tokenAt(rank: number): number
}

export function createCandidateHeap(scores: Float32Array): CandidateHeap {
  const size = scores.length
  // heap[0..left) is a binary heap; the taken ones lie behind it, the best at the very end.
  const heap = new Int32Array(size)
  let left = 0

  const idAt = (slot: number): number => heap[slot] ?? 0
  const scoreOf = (token: number): number => scores[token] ?? -Infinity

  function isBefore(a: number, b: number): boolean {
    const difference = scoreOf(a) - scoreOf(b)
    return difference > 0 || (difference === 0 && a < b)
  }

  function sink(from: number): void {
    const token = idAt(from)
    let slot = from
    for (;;) {
      let child = 2 * slot + 1
      if (child >= left) break
      if (child + 1 < left && isBefore(idAt(child + 1), idAt(child))) child++
      if (!isBefore(idAt(child), token)) break
      heap[slot] = idAt(child)
      slot = child
    }
    heap[slot] = token
  }

  function start(): void {
    for (let token = 0; token < size; token++) heap[token] = token
    left = size
    for (let slot = (size >> 1) - 1; slot >= 0; slot--) sink(slot)
  }

  function take(): number {
    const best = idAt(0)
    left--
    heap[0] = idAt(left)
    if (left > 0) sink(0)
    heap[left] = best
    return best
  }

  function tokenAt(rank: number): number {
    while (size - left <= rank) take()
    return idAt(size - 1 - rank)
  }

  function takeBest(wanted: number): number {
    let count = Math.min(wanted, size)
    const worst = scoreOf(tokenAt(count - 1))
    while (count < size && scoreOf(idAt(0)) === worst) {
      take()
      count++
    }
    return count
  }

  return { start, takeBest, tokenAt }
}
