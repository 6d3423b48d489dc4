import { CrowdError, toCrowdError, type ErrorCode } from '../core/errors.ts'

/** The promise, or a CrowdError with `code` once `limitMs` are over. */
export async function withTimeLimit<T>(
  promise: Promise<T>,
  limit: { readonly limitMs: number; readonly what: string; readonly code: ErrorCode },
): Promise<T> {
  const { limitMs, what, code } = limit
  let timer: ReturnType<typeof setTimeout> | undefined
  const expired = new Promise<never>((_, reject) => {
    timer = setTimeout(() => {
      reject(new CrowdError(code, `${what} did not end within ${limitMs} ms`))
    }, limitMs)
  })
  try {
    return await Promise.race([promise, expired])
  } finally {
    clearTimeout(timer)
  }
}

/** What a storage call threw: a full quota is told apart from the rest. */
export function storageError(thrown: unknown, what: string): CrowdError {
  if (thrown instanceof CrowdError) return thrown
  const { message } = toCrowdError(thrown)
  const code = isFull(thrown) ? 'storage-full' : 'storage-failed'
  return new CrowdError(code, `${what}: ${message}`, { cause: thrown })
}

/** IndexedDB names it, a file system gives one of two codes. */
function isFull(thrown: unknown): boolean {
  if (!(thrown instanceof Error)) return false
  const code = 'code' in thrown ? thrown.code : null
  return thrown.name === 'QuotaExceededError' || code === 'ENOSPC' || code === 'EDQUOT'
}
