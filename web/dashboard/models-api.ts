import * as v from 'valibot'
import { CrowdError, fromWire, toCrowdError } from '../../sdk/core/errors.ts'

const modelList = v.object({
  /** Whether the token proves the operator. */
  operator: v.boolean(),
  served: v.string(),
  /** Why the last change came to nothing. */
  failure: v.nullable(v.object({ model: v.string(), code: v.string(), message: v.string() })),
  models: v.array(
    v.object({
      name: v.string(),
      builtin: v.boolean(),
      served: v.boolean(),
      layers: v.nullable(v.number()),
      contextLength: v.nullable(v.number()),
      bytes: v.nullable(v.number()),
      /** Why it can't be served; '' where it can. */
      problem: v.string(),
    }),
  ),
})
const failure = v.object({ error: v.object({ code: v.string(), message: v.string() }) })

/** The models that the host knows, as it tells whoever asks. */
export type ModelList = v.InferOutput<typeof modelList>

export type ModelsApi = {
  /** @throws CrowdError wrong-secret, signaling-closed */
  read(): Promise<ModelList>
  /** Begins a change of the model. @throws CrowdError not-the-operator, model-not-found, signaling-closed */
  choose(model: string, anyway: boolean): Promise<ModelList>
}

const ANSWER_MS = 10_000

/** What this page may prove; each may be empty. */
type Proofs = { readonly adminToken: string; readonly secret: string }

export function createModelsApi(proofs: Proofs, fetch: typeof globalThis.fetch): ModelsApi {
  const { adminToken, secret } = proofs

  async function call(path: string, bearer: string, init: RequestInit = {}): Promise<ModelList> {
    const headers = { authorization: `Bearer ${bearer}`, 'content-type': 'application/json' }
    const signal = AbortSignal.timeout(ANSWER_MS)
    const response = await fetch(path, { ...init, headers, signal }).catch((cause: unknown) => {
      throw new CrowdError('signaling-closed', 'the host does not answer', { cause })
    })
    const json: unknown = await response.json().catch(() => null)
    const failed = v.safeParse(failure, json)
    if (failed.success) throw fromWire(failed.output.error)
    const list = v.safeParse(modelList, json)
    if (list.success) return list.output
    throw new CrowdError('signaling-closed', 'the host gave no list of models')
  }

  return {
    async read() {
      try {
        return await call('/api/models', adminToken === '' ? secret : adminToken)
      } catch (thrown) {
        // A token of a host that was set up anew since: this page is a visitor's then.
        if (toCrowdError(thrown).code !== 'wrong-secret' || adminToken === '') throw thrown
        return await call('/api/models', secret)
      }
    },
    choose(model, anyway) {
      const body = JSON.stringify({ model, anyway })
      return call('/api/admin/model', adminToken, { method: 'POST', body })
    },
  }
}
