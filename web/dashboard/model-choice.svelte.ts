import { toCrowdError, type CrowdError } from '../../sdk/core/errors.ts'
import type { ModelList, ModelsApi } from './models-api.ts'

/** The list of models on the page, and the choice of one. */
export interface ModelChoice {
  /** null before it came. */
  readonly list: ModelList | null
  /** Why the list could not be read, or a choice not be made. */
  readonly error: CrowdError | null
  /** A choice is on its way to the host. */
  readonly busy: boolean
  /** Reads the list anew; never throws. */
  refresh(): Promise<void>
  choose(model: string, anyway: boolean): Promise<void>
}

export function createModelChoice(api: ModelsApi): ModelChoice {
  let list = $state.raw<ModelList | null>(null)
  let error = $state.raw<CrowdError | null>(null)
  let busy = $state(false)
  /** An answer to an older question must not replace that to a newer one. */
  let newest = 0

  async function take(asked: Promise<ModelList>): Promise<void> {
    newest += 1
    const turn = newest
    try {
      const next = await asked
      if (turn !== newest) return
      list = next
      error = null
    } catch (thrown) {
      if (turn === newest) error = toCrowdError(thrown)
    }
  }

  return {
    get list() {
      return list
    },
    get error() {
      return error
    },
    get busy() {
      return busy
    },
    refresh: () => take(api.read()),
    async choose(model, anyway) {
      busy = true
      await take(api.choose(model, anyway))
      busy = false
    },
  }
}
