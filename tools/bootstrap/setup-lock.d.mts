export function withLock(
  path: string,
  work: () => Promise<void>,
  options?: { limitMs?: number; onWait?: () => void },
): Promise<void>
