import type { ErrorCode } from '../core/errors.ts'

/** Failures that nobody's waiting cures: whoever runs the worker has to change something first. */
const FINAL: ReadonlySet<ErrorCode> = new Set([
  'bad-option',
  'wrong-secret',
  'protocol-mismatch',
  'replaced',
  'host-untrusted',
])

/** EX_CONFIG of sysexits.h; deploy/ tells supervisors not to start the worker again after it. */
export const FINAL_EXIT_CODE = 78

export function exitCodeOf(code: ErrorCode): number {
  return FINAL.has(code) ? FINAL_EXIT_CODE : 1
}
