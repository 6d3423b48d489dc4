import { CrowdError } from '../core/errors.ts'

/**
 * Names of all files of a split model, from the name of any of them: `NAME-00001-of-00003.gguf` and so on.
 * @throws CrowdError model-invalid where the name doesn't say, or says another number of files
 */
export function shardPaths(file: string, total: number): string[] {
  const match = /^(.+)-\d{5}-of-(\d{5})\.gguf$/.exec(file)
  const [, prefix = '', named = ''] = match ?? []
  if (match === null || Number(named) !== total) {
    throw new CrowdError(
      'model-invalid',
      `${file} is one of ${total} files; they must be named NAME-00001-of-${String(total).padStart(5, '0')}.gguf and so on.`,
    )
  }
  return Array.from(
    { length: total },
    (_, i) => `${prefix}-${String(i + 1).padStart(5, '0')}-of-${named}.gguf`,
  )
}
