import { homedir } from 'node:os'
import { join, resolve } from 'node:path'

/**
 * Where imported models and the host's own files are kept: what was given, else `CROWDINFER_DATA`, else
 * `~/.crowdinfer`; empty counts as not given. Absolute.
 */
export function dataDirectory(
  given?: string,
  environment: Readonly<Record<string, string | undefined>> = process.env,
): string {
  const named = [given, environment['CROWDINFER_DATA']]
    .map((path) => path?.trim() ?? '')
    .find((path) => path !== '')
  return resolve(named ?? join(homedir(), '.crowdinfer'))
}
