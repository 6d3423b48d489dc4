import { CrowdError } from '../core/errors.ts'

export function stoppedError(): CrowdError {
  return new CrowdError('aborted', 'the download was stopped; the same command goes on with it')
}
