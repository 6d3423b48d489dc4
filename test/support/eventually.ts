/** Waits until `check` gives something, looking often; fails with `what` after the limit. */
export async function eventually<T>(
  what: string,
  limitMs: number,
  check: () => T | null | Promise<T | null>,
): Promise<T> {
  const end = Date.now() + limitMs
  for (;;) {
    const found = await check()
    if (found !== null && found !== false) return found
    if (Date.now() > end) throw new Error(`${what}: not within ${limitMs / 1_000} s`)
    await new Promise((resolve) => setTimeout(resolve, 50))
  }
}
