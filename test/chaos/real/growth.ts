/** Means of the first and the last third of a series, and by what share the last is larger. */
export type Growth = { readonly first: number; readonly last: number; readonly growth: number }

export function growthOf(samples: readonly number[]): Growth {
  const third = Math.max(1, Math.floor(samples.length / 3))
  const [first, last] = [mean(samples.slice(0, third)), mean(samples.slice(-third))]
  return { first, last, growth: first === 0 ? 0 : last / first - 1 }
}

function mean(list: readonly number[]): number {
  return list.reduce((sum, value) => sum + value, 0) / Math.max(1, list.length)
}
