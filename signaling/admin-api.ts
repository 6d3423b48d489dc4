import { createHash, timingSafeEqual } from 'node:crypto'
import express, { Router, type NextFunction, type Request, type Response } from 'express'
import { CrowdError, ERROR_CODES, toCrowdError, type ErrorCode } from '../sdk/core/errors.ts'
import { swarmAdvice } from '../sdk/core/swarm/advice.ts'
import type { Assignment, ModelChange, SwarmState } from '../sdk/core/swarm/state.ts'
import { isAwaited } from '../sdk/core/swarm/views.ts'
import type { HostedModels } from './hosted-models.ts'
import type { KnownModel, ModelLibrary } from './model-library.ts'
import type { ModelSwitch } from './model-switch.ts'

export type AdminApiDeps = {
  readonly library: ModelLibrary
  readonly models: Pick<HostedModels, 'served'>
  readonly modelSwitch: ModelSwitch
  state(): SwarmState
  /** What the operator gives as `Authorization: Bearer`. */
  readonly token: string
  /** Whether this is the pool's secret; in an open pool anything is. */
  knowsSecret(given: string): boolean
  /** Monotonic, ms. */
  now(): number
}

/** The list is read from disk at most this often, ms, whoever asks. */
const LIST_MS = 1_000

const BODY_MAX_BYTES = 4_096
const STATUS: Partial<Record<ErrorCode, number>> = {
  'bad-request': 400,
  'wrong-secret': 401,
  'not-the-operator': 401,
  'model-not-found': 404,
}

/**
 * Under `/api`: which models there are, for whoever knows the pool's secret, and the choice of one, for the
 * operator. No other origin may read or ask: there are no CORS headers, and no cookie ever counts.
 */
export function createAdminApi(deps: AdminApiDeps): Router {
  const router = Router()
  const list = createFreshList(deps)
  const expected = digest(deps.token)
  const isOperator = (request: Request): boolean =>
    timingSafeEqual(digest(bearerOf(request)), expected)

  router.use((_request, response, next) => {
    response.set('Cache-Control', 'no-store')
    next()
  })
  router.get('/models', async (request, response) => {
    const operator = isOperator(request)
    if (!operator && !deps.knowsSecret(bearerOf(request)))
      throw new CrowdError('wrong-secret', 'this pool is private: Authorization: Bearer SECRET')
    response.json(modelsBody(deps, await list(), operator))
  })
  router.post(
    '/admin/model',
    (request, _response, next) => {
      if (!isOperator(request))
        throw new CrowdError('not-the-operator', 'Authorization: Bearer TOKEN is missing or wrong')
      next()
    },
    express.json({ limit: BODY_MAX_BYTES, type: () => true }),
    async (request, response) => {
      const { model, anyway } = readChoice(request.body)
      await deps.modelSwitch.use(model, anyway)
      response.status(202).json(modelsBody(deps, await list(), true))
    },
  )
  router.use(sendFailure)
  return router
}

function createFreshList({ library, now }: AdminApiDeps): () => Promise<readonly KnownModel[]> {
  let reading: Promise<readonly KnownModel[]> | null = null
  let readAt = -Infinity
  return () => {
    if (reading === null || now() - readAt >= LIST_MS) {
      readAt = now()
      reading = library.list()
    }
    return reading
  }
}

function bearerOf(request: Request): string {
  return /^Bearer +(.+?) *$/i.exec(request.get('authorization') ?? '')?.[1] ?? ''
}

/** Compared as hashes: the time says nothing of the token. */
function digest(text: string): Buffer {
  return createHash('sha256').update(text).digest()
}

/** Reasons of failures may name folders of the host, which are for its operator alone. */
function modelsBody(deps: AdminApiDeps, known: readonly KnownModel[], operator: boolean): unknown {
  const { change, changeFailure } = deps.state()
  const served = deps.models.served()
  return {
    operator,
    served: served.name,
    change: change === null ? null : changeBody(deps.state(), change),
    failure: changeFailure === null ? null : failureBody(changeFailure, operator),
    models: known.map(({ name, isBuiltin, size, problem }) => ({
      name,
      builtin: isBuiltin,
      served: name === served.name,
      layers: size?.layerCount ?? null,
      contextLength: size?.contextLength ?? null,
      bytes: size?.bytes ?? null,
      problem: operator ? problem : problem === '' ? '' : ERROR_CODES['model-invalid'],
    })),
  }
}

/** How far the devices are, of those that hold something or are to. */
function changeBody(state: SwarmState, { name, phase, step }: ModelChange): unknown {
  const workers = [...state.peers.values()].filter((peer) => peer.role === 'worker')
  const assigned = workers.flatMap(({ assignment }) => (assignment?.range ? [assignment] : []))
  const sum = (pick: (one: Assignment) => number): number =>
    assigned.reduce((total, one) => total + pick(one), 0)
  const loading = assigned.filter((one) => one.state !== 'ready' && one.state !== 'failed')
  return {
    model: name,
    phase,
    step,
    ready: assigned.filter((one) => one.state === 'ready').length,
    busy: workers.filter(isAwaited).length + loading.length,
    doneBytes: sum((one) => one.doneBytes),
    totalBytes: sum((one) => one.totalBytes),
    advice: swarmAdvice(state),
  }
}

function failureBody(
  { name, error }: NonNullable<SwarmState['changeFailure']>,
  operator: boolean,
): unknown {
  const hint = ERROR_CODES[error.code]
  return { model: name, code: error.code, message: operator ? error.message : hint, hint }
}

/** @throws CrowdError bad-request */
function readChoice(body: unknown): { readonly model: string; readonly anyway: boolean } {
  const fields: Readonly<Record<string, unknown>> =
    typeof body === 'object' && body !== null ? { ...body } : {}
  const { model, anyway = false } = fields
  if (typeof model !== 'string' || model === '' || model.length > 200)
    throw new CrowdError('bad-request', 'model must be the name of one of /api/models')
  if (typeof anyway !== 'boolean')
    throw new CrowdError('bad-request', 'anyway must be true or false')
  return { model, anyway }
}

function sendFailure(
  thrown: unknown,
  _request: Request,
  response: Response,
  next: NextFunction,
): void {
  // What express says of a body that it can't read is answered as everywhere.
  if (!(thrown instanceof CrowdError) || response.headersSent) {
    next(thrown)
    return
  }
  const { code, message, hint } = toCrowdError(thrown)
  response.status(STATUS[code] ?? 500).json({ error: { code, message, hint } })
}
