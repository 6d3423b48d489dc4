import express, { Router, type NextFunction, type Request, type Response } from 'express'
import { CrowdError } from '../../sdk/core/errors.ts'
import type { Wanted } from './access.ts'
import { answerRequest, type AnswerDeps } from './answer-request.ts'
import { apiFailure, HttpError } from './api-error.ts'
import type { ApiModel } from './api-model.ts'
import { BODY_MAX_BYTES } from './api-limits.ts'
import type { Endpoint } from './field.ts'
import { parseRequest } from './parse-request.ts'
import { answersAtOnce } from './run-choices.ts'

export type ApiDeps = Omit<AnswerDeps, 'model'> & {
  /** The model that is served now. */
  served(): ApiModel
  /** Lets a request in and says whose it is, or throws why not: wrong-secret, too-many-requests. */
  admit(request: Request, wanted: Wanted): Promise<string>
  /** Room for some answers of a caller, until the returned function is called. @throws CrowdError too-many-requests */
  enter(caller: string, answers: number): () => void
  /** When the host started, seconds since 1970. */
  readonly startedS: number
}

const ENDPOINTS: Readonly<Record<string, Endpoint>> = {
  '/chat/completions': 'chat',
  '/completions': 'completions',
}

/** Headers of answers that pages elsewhere may read. */
const EXPOSED = 'X-Request-Id, X-Crowdinfer-Route, Server-Timing, Retry-After'

/** Everything under `/v1`, in the shapes that OpenAI's clients expect. API.md says what it takes. */
export function createApiRouter(deps: ApiDeps): Router {
  const router = Router()
  router.use(allowOrigins)
  router.get(['/models', '/models/:id'], async (request, _response, next) => {
    await deps.admit(request, 'models')
    next()
  })
  router.get('/models', (_request, response) => {
    response.json({ object: 'list', data: [modelBody(deps)] })
  })
  router.get('/models/:id', (request, response) => {
    const { id } = deps.served().manifest
    if (request.params.id !== id)
      throw new CrowdError('model-not-found', `this host serves ${id} and no other model`)
    response.json(modelBody(deps))
  })
  const callers = new WeakMap<Request, string>()
  router.use(async (request, _response, next) => {
    callers.set(request, await deps.admit(request, 'answers'))
    next()
  })
  const readBody = express.json({ limit: BODY_MAX_BYTES, type: () => true, strict: false })
  for (const [path, endpoint] of Object.entries(ENDPOINTS))
    router.post(path, readBody, async (request, response) => {
      const model = deps.served()
      const asked = parseRequest(endpoint, request.body, await model.sampling())
      const leave = deps.enter(callers.get(request) ?? '', answersAtOnce(asked))
      try {
        await answerRequest({ ...deps, model }, asked, response)
      } finally {
        leave()
      }
    })
  router.all(['/models', '/models/:id'], allowOnly('GET'))
  router.all(Object.keys(ENDPOINTS), allowOnly('POST'))
  router.use((request) => {
    throw new HttpError(
      'bad-request',
      `there is no ${request.method} ${request.originalUrl.slice(0, 200)}`,
      {
        status: 404,
        apiCode: 'unknown_url',
      },
    )
  })
  router.use(sendFailure)
  return router
}

/** The window in force is here too, under both names that clients look for. */
function modelBody({ served, startedS }: ApiDeps): unknown {
  const { manifest } = served()
  return {
    id: manifest.id,
    object: 'model',
    created: startedS,
    owned_by: 'crowdinfer',
    context_length: manifest.contextLength,
    max_model_len: manifest.contextLength,
  }
}

/**
 * Pages of any origin may call and read, errors too: whether they may ask is decided by the key alone. The
 * preflight is answered before that, since browsers send it without the key.
 */
function allowOrigins(request: Request, response: Response, next: NextFunction): void {
  response.set({
    'Access-Control-Allow-Origin': '*',
    'Access-Control-Expose-Headers': EXPOSED,
    'Cross-Origin-Resource-Policy': 'cross-origin',
    'Cache-Control': 'no-store',
  })
  if (request.method !== 'OPTIONS') {
    next()
    return
  }
  response.set({
    'Access-Control-Allow-Methods': 'GET, POST, OPTIONS',
    // A star would not allow Authorization.
    'Access-Control-Allow-Headers':
      request.get('access-control-request-headers') ?? 'authorization, content-type',
    'Access-Control-Max-Age': '7200',
    Vary: 'Access-Control-Request-Headers',
  })
  if (request.get('access-control-request-private-network') === 'true')
    response.set('Access-Control-Allow-Private-Network', 'true')
  response.status(204).end()
}

function allowOnly(method: string): (request: Request, response: Response) => void {
  return (request, response) => {
    response.set('Allow', `${method}, OPTIONS`)
    throw new HttpError(
      'bad-request',
      `${request.method} is not for ${request.originalUrl.slice(0, 200)}: use ${method}`,
      {
        status: 405,
        apiCode: 'method_not_allowed',
      },
    )
  }
}

/** Every failure as the standard error object. */
function sendFailure(
  thrown: unknown,
  _request: Request,
  response: Response,
  next: NextFunction,
): void {
  if (response.headersSent) {
    next(thrown)
    return
  }
  const { status, retryAfterS, body } = apiFailure(bodyFailure(thrown) ?? thrown)
  if (retryAfterS !== null) response.set('Retry-After', String(retryAfterS))
  response.status(status).json(body)
}

/** What express says of a body that it can't read. */
function bodyFailure(thrown: unknown): HttpError | null {
  if (!(thrown instanceof Error) || thrown instanceof CrowdError) return null
  const status = 'status' in thrown && typeof thrown.status === 'number' ? thrown.status : 500
  if (status >= 500) return null
  if (status === 413)
    return new HttpError('bad-request', `the request is larger than ${BODY_MAX_BYTES} bytes`, {
      status,
      apiCode: 'request_too_large',
    })
  return new HttpError(
    'bad-request',
    `the request can't be read: ${thrown.message.slice(0, 200)}`,
    {
      status,
      apiCode: 'invalid_json',
    },
  )
}
