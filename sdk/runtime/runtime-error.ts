import { CrowdError, type ErrorCode } from '../core/errors.ts'

const OUT_OF_MEMORY =
  /out of memory|bad_alloc|allocation (failed|size)|failed to allocate|array buffer allocation/i

/** What the runtime threw, with our code: running out of memory is told apart, since it has another cure. */
export function runtimeError(thrown: unknown, what: string, code: ErrorCode): CrowdError {
  if (thrown instanceof CrowdError) return thrown
  // ORT's WASM build throws bare numbers (pointers) when it runs out of memory.
  const message = thrown instanceof Error ? thrown.message : String(thrown)
  const isMemory = OUT_OF_MEMORY.test(message) || typeof thrown === 'number'
  return new CrowdError(isMemory ? 'out-of-memory' : code, `${what}: ${message}`, { cause: thrown })
}
