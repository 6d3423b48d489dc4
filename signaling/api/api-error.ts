import { CrowdError, toCrowdError, type ErrorCode } from '../../sdk/core/errors.ts'

/** A request that can't be served as it stands; `param` names the field. */
export class FieldError extends CrowdError {
  readonly param: string
  readonly apiCode: string

  constructor(param: string, message: string, apiCode = 'invalid_value') {
    super('bad-request', message)
    this.param = param
    this.apiCode = apiCode
  }
}

/** A failure with its own status, where a code alone doesn't say it. */
export class HttpError extends CrowdError {
  readonly status: number
  readonly apiCode: string
  readonly retryAfterS: number | null

  constructor(
    code: ErrorCode,
    message: string,
    http: { readonly status: number; readonly apiCode: string; readonly retryAfterS?: number },
  ) {
    super(code, message)
    this.status = http.status
    this.apiCode = http.apiCode
    this.retryAfterS = http.retryAfterS ?? null
  }
}

/** What goes over HTTP: a status, the standard error object, and when to try again. */
export type ApiFailure = {
  readonly status: number
  readonly retryAfterS: number | null
  readonly body: { readonly error: ErrorObject }
}

type ErrorObject = {
  readonly message: string
  readonly type: string
  readonly param: string | null
  readonly code: string
}

type Shape = { readonly status: number; readonly apiCode?: string; readonly retryAfterS?: number }

/** Codes that OpenAI's clients know keep OpenAI's name; every other failure has its code of the README. */
const SHAPES: Partial<Record<ErrorCode, Shape>> = {
  'bad-request': { status: 400, apiCode: 'invalid_request' },
  'prompt-too-long': { status: 400, apiCode: 'context_length_exceeded' },
  'model-not-found': { status: 404, apiCode: 'model_not_found' },
  'model-unsupported': { status: 400 },
  'wrong-secret': { status: 401, apiCode: 'invalid_api_key' },
  'too-many-requests': { status: 429, apiCode: 'rate_limit_exceeded', retryAfterS: 5 },
  'pool-full': { status: 503, retryAfterS: 10 },
  'model-changed': { status: 503, retryAfterS: 5 },
  'ring-incomplete': { status: 503, retryAfterS: 10 },
  'stage-lost': { status: 503, retryAfterS: 2 },
  'stage-failed': { status: 503, retryAfterS: 2 },
  'link-closed': { status: 503, retryAfterS: 2 },
  'non-finite': { status: 503, retryAfterS: 2 },
  'out-of-memory': { status: 503, retryAfterS: 5 },
  'signaling-closed': { status: 503, retryAfterS: 5 },
  timeout: { status: 504, retryAfterS: 5 },
}

/** The message names a path of the host, which is for whoever runs it: its log has it. */
const STORAGE_FAILED = 'the host could not read its own files; its log says which'

/** Any thrown value as an answer of the API. */
export function apiFailure(thrown: unknown): ApiFailure {
  const error = toCrowdError(thrown)
  const { status, apiCode, retryAfterS } = shapeOf(error)
  return {
    status,
    retryAfterS: retryAfterS ?? null,
    body: {
      error: {
        message: error.code === 'storage-failed' ? STORAGE_FAILED : error.message,
        type: typeOf(status),
        param: paramOf(error),
        code: apiCode ?? error.code,
      },
    },
  }
}

function shapeOf(error: CrowdError): Shape {
  if (error instanceof FieldError) return { status: 400, apiCode: error.apiCode }
  if (error instanceof HttpError) {
    const { status, apiCode, retryAfterS } = error
    return { status, apiCode, ...(retryAfterS === null ? {} : { retryAfterS }) }
  }
  return SHAPES[error.code] ?? { status: 500 }
}

function paramOf(error: CrowdError): string | null {
  if (error instanceof FieldError) return error.param
  return error.code === 'model-not-found' ? 'model' : null
}

function typeOf(status: number): string {
  if (status === 401) return 'authentication_error'
  if (status === 429) return 'rate_limit_error'
  return status < 500 ? 'invalid_request_error' : 'server_error'
}
