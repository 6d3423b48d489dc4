import { CrowdError } from '../core/errors.ts'

/** Whether every value is a finite number. One multiplication per value: 0 × anything else is NaN. */
export function allFinite(values: Float32Array): boolean {
  let sum = 0
  for (const value of values) sum += value * 0
  return sum === 0
}

/** @throws CrowdError non-finite */
export function requireFinite(values: Float32Array, what: string): void {
  if (!allFinite(values)) throw new CrowdError('non-finite', `${what}: not all numbers are finite`)
}
