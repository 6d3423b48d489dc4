import * as v from 'valibot'
import { CrowdError, fromWire } from '../sdk/core/errors.ts'

export type ModelUse = {
  /** The host's origin. */
  readonly host: string
  readonly token: string
  readonly model: string
  /** Also where the devices that are there can't hold it. */
  readonly anyway: boolean
}

export type ModelUseDeps = {
  readonly fetch: typeof globalThis.fetch
  wait(ms: number): Promise<void>
  /** Monotonic, ms. */
  now(): number
  write(line: string): void
}

const POLL_MS = 500
const ANSWER_MS = 10_000
/** Cutting or downloading a large model takes long, but not for ever. */
const CHANGE_MS = 4 * 3_600_000
/** Nothing loads for this long: whatever is missing needs somebody who brings it. */
const IDLE_MS = 3_000

const body = v.object({
  served: v.string(),
  change: v.nullable(
    v.object({
      model: v.string(),
      phase: v.picklist(['preparing', 'draining', 'loading']),
      step: v.string(),
      /** Devices that are ready, that still load, and what they are told to do about the rest. */
      ready: v.number(),
      busy: v.number(),
      doneBytes: v.number(),
      totalBytes: v.number(),
      advice: v.string(),
    }),
  ),
  failure: v.nullable(v.object({ model: v.string(), code: v.string(), message: v.string() })),
})
type Models = v.InferOutput<typeof body>
type Change = NonNullable<Models['change']>

/**
 * Tells a running host to serve another model and waits until its ring answers with it.
 * @throws CrowdError host-unreachable, host-untrusted, not-the-operator, model-not-found, timeout, aborted
 * (another model was chosen meanwhile), and whatever kept the model from being served
 */
export async function useModel(use: ModelUse, deps: ModelUseDeps): Promise<void> {
  const end = deps.now() + CHANGE_MS
  let told = ''
  let busyAt = deps.now()
  for (
    let models = await call(use, deps, { model: use.model, anyway: use.anyway });
    !isOver(models, use.model);
    models = await call(use, deps, null)
  ) {
    const { change } = models
    if (change === null) continue
    const line = lineOf(change)
    if (line !== told) deps.write(line)
    told = line
    if (change.phase !== 'loading' || change.busy > 0) busyAt = deps.now()
    if (deps.now() - busyAt > IDLE_MS) {
      deps.write(`${use.model} is served; the ring is not complete: ${change.advice}`)
      return
    }
    if (deps.now() > end)
      throw new CrowdError('timeout', `no ring after ${CHANGE_MS / 3_600_000} hours`)
    await deps.wait(POLL_MS)
  }
  deps.write(`${use.model} is served.`)
}

/** True once the model is served. @throws CrowdError where it isn't and won't be */
function isOver({ change, failure, served }: Models, model: string): boolean {
  if (change?.model === model) return false
  // A change that failed on the devices is one that leads back to the former model.
  if (failure?.model === model) throw fromWire(failure)
  if (change === null && served === model) return true
  throw new CrowdError('aborted', `meanwhile ${change?.model ?? served} was chosen`)
}

function lineOf(change: Change): string {
  if (change.phase === 'preparing') return `preparing: ${change.step}`
  if (change.phase === 'draining') return 'waiting for the answers that run'
  const { ready, busy, doneBytes, totalBytes } = change
  const megabytes = (bytes: number): string => (bytes / 1e6).toFixed(1)
  return (
    `loading: ${ready} of ${ready + busy} devices are ready, ` +
    `${megabytes(doneBytes)} of ${megabytes(totalBytes)} MB`
  )
}

/** `choice` null only looks. */
async function call(use: ModelUse, deps: ModelUseDeps, choice: object | null): Promise<Models> {
  const path = choice === null ? '/api/models' : '/api/admin/model'
  const url = URL.canParse(path, use.host) ? new URL(path, use.host) : null
  if (url === null) throw new CrowdError('bad-option', `--host: "${use.host}" is no address`)
  const response = await deps
    .fetch(url, {
      method: choice === null ? 'GET' : 'POST',
      headers: { authorization: `Bearer ${use.token}`, 'content-type': 'application/json' },
      body: choice === null ? null : JSON.stringify(choice),
      signal: AbortSignal.timeout(ANSWER_MS),
    })
    .catch((cause: unknown) => {
      throw unreachable(url, cause)
    })
  const json: unknown = await response.json().catch(() => null)
  const failed = v.safeParse(errorBody, json)
  if (failed.success) throw fromWire(failed.output.error)
  const models = v.safeParse(body, json)
  if (models.success) return models.output
  throw new CrowdError('host-unreachable', `${url.origin} is no host of this version`)
}

const errorBody = v.object({ error: v.object({ code: v.string(), message: v.string() }) })
const UNTRUSTED = /SELF_SIGNED|UNABLE_TO_VERIFY|CERT/

function unreachable(url: URL, cause: unknown): CrowdError {
  const inner = cause instanceof Error && cause.cause instanceof Error ? cause.cause : cause
  const code = inner instanceof Error && 'code' in inner ? String(inner.code) : ''
  return new CrowdError(
    UNTRUSTED.test(code) ? 'host-untrusted' : 'host-unreachable',
    `${url.origin} does not answer${code === '' ? '' : ` (${code})`}`,
    { cause },
  )
}
