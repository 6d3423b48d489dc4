import { CrowdError } from '../core/errors.ts'

export type ResolvedModel = { readonly name: string; readonly directory: string }

/**
 * A built-in model's name (a directory under `builtinDir`) or a path to a directory.
 * @throws CrowdError model-not-found
 */
export function resolveModel(nameOrPath: string, builtinDir: string): Promise<ResolvedModel> {
  throw new CrowdError('model-not-found', nameOrPath + builtinDir)
}
