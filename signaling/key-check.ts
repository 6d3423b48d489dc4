import { findKey, type ApiKey, type ApiKeys } from './api-keys.ts'

/** A running host looks for added and revoked keys this often, ms. */
const FRESH_MS = 1_000

/** Whether there are keys, and the id of the one that was given. */
type KeyCheck = (given: string) => Promise<{ readonly any: boolean; readonly id: string | null }>

/** Reads the keys at most once a second, however many requests come. */
export function createKeyCheck(keys: Pick<ApiKeys, 'list'>, now: () => number): KeyCheck {
  let reading: Promise<readonly ApiKey[]> | null = null
  let readAt = -Infinity

  return async (given) => {
    if (reading === null || now() - readAt >= FRESH_MS) {
      readAt = now()
      reading = keys.list()
      // What can't be read now may be readable at the next request.
      reading.catch(() => {
        reading = null
      })
    }
    const found = await reading
    return { any: found.length > 0, id: findKey(found, given)?.id ?? null }
  }
}
