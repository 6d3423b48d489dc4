/**
 * One slope per head, f32: a geometric series from 2^(-8/n); heads beyond a power of two take every other
 * value of the next longer series (Press, Smith and Lewis 2021 and their code).
 */
export function alibiSlopes(headCount: number): number[] {
  const series = (length: number): number[] =>
    Array.from({ length }, (_, i) => 2 ** ((-8 * (i + 1)) / length))
  const power = 2 ** Math.floor(Math.log2(headCount))
  const between = series(2 * power).filter((_, i) => i % 2 === 0)
  return [...series(power), ...between.slice(0, headCount - power)].map(Math.fround)
}
