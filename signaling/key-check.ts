import { findKey, type ApiKey, type ApiKeys } from './api-keys.ts'

/** A running host looks for added and revoked keys this often, ms. */
const FRESH_MS = 1_000

/** Whether there are keys, and the id of the one that was given. */
type KeyCheck = (given: string) => Promise<{ readonly any: boolean; readonly id: string | null }>

/**
 * Reads the keys at most once a second, however many requests come, and also where they can't be read.
 * @param failed told of each reading that failed
 */
export function createKeyCheck(
  keys: Pick<ApiKeys, 'list'>,
  now: () => number,
  failed: (thrown: unknown) => void,
): KeyCheck {
  let reading: Promise<readonly ApiKey[]> | null = null
  let readAt = -Infinity

  return async (given) => {
    if (reading === null || now() - readAt >= FRESH_MS) {
      readAt = now()
      reading = keys.list()
      reading.catch(failed)
    }
    const found = await reading
    return { any: found.length > 0, id: findKey(found, given)?.id ?? null }
  }
}
