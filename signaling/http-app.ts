import express, {
  type Express,
  type NextFunction,
  type Request,
  type Response,
  type Router,
} from 'express'
import { join } from 'node:path'
import { ERROR_CODES, toCrowdError, type ErrorCode } from '../sdk/core/errors.ts'
import { blockPieces, type Manifest } from '../sdk/core/model/manifest.ts'
import type { SwarmSnapshot } from '../sdk/protocol/swarm-snapshot.ts'
import { PROTOCOL } from '../sdk/protocol/version.ts'
import type { HostedModel } from './hosted-model.ts'
import type { HostMetrics } from './metrics.ts'

type HttpAppDeps = {
  served(): Manifest
  /** What devices may fetch under this id. */
  modelWithId(id: string): HostedModel | undefined
  /** The built pages; must exist. */
  readonly siteDir: string
  /** Everything under `/v1`. */
  readonly api: Router
  /** The operator's part of `/api`. */
  readonly admin: Router
  /** Whether the ring answers. */
  health(): Promise<{ readonly ok: boolean; readonly reason: string }>
  readonly metrics: Pick<HostMetrics, 'contentType' | 'text' | 'answered'>
  /** What `/api/swarm` shows to a request. */
  swarm(authorization: string | undefined): SwarmSnapshot
}

/** One page per file of the site. */
const PAGES: Readonly<Record<string, string>> = {
  '/': 'index.html',
  '/join': 'join.html',
  '/dashboard': 'dashboard.html',
}

const YEAR_SECONDS = 31_536_000

/**
 * Scripts, styles and connections from here only. `wasm-unsafe-eval` lets WASM compile; workers may start
 * from blobs, as ORT's threads do.
 */
const CONTENT_POLICY = [
  "default-src 'self'",
  "script-src 'self' 'wasm-unsafe-eval'",
  "worker-src 'self' blob:",
  "connect-src 'self' ws: wss:",
  "img-src 'self'",
  "style-src 'self'",
  "object-src 'none'",
  "base-uri 'none'",
  "form-action 'self'",
  "frame-ancestors 'self'",
].join('; ')

/** Everything that the host serves over HTTP. Keeps no state of its own. */
export function createHttpApp(deps: HttpAppDeps): Express {
  const app = express()
  app.disable('x-powered-by')
  app.use(commonHeaders)
  app.use('/v1', (request, response, next) => {
    const { path } = request
    response.once('close', () => {
      deps.metrics.answered(path, response.writableFinished ? response.statusCode : 'closed')
    })
    next()
  })
  app.use('/v1', deps.api)
  app.get('/healthz', async (_request, response) => {
    const { complete } = deps.swarm(undefined)
    const { ok, reason } = await deps.health()
    response.set('Cache-Control', 'no-store').status(ok ? 200 : 503)
    response.json({ ok, reason, protocol: PROTOCOL, model: deps.served().id, complete })
  })
  app.get('/metrics', async (_request, response) => {
    response.set({ 'Cache-Control': 'no-store', 'Content-Type': deps.metrics.contentType })
    response.send(await deps.metrics.text())
  })
  app.get('/api/swarm', (request, response) => {
    response.set('Cache-Control', 'no-store')
    response.json(deps.swarm(request.get('authorization')))
  })
  app.use('/api', deps.admin)
  addModelRoutes(app, (id) => deps.modelWithId(id))
  addSite(app, deps.siteDir)
  app.use((request: Request, response: Response) => {
    sendError(response, 404, { code: 'bad-request', message: `nothing at ${request.path}` })
  })
  app.use(onError)
  return app
}

/** Isolation gives tabs WASM threads; the policy keeps foreign code out. */
function commonHeaders(_request: Request, response: Response, next: NextFunction): void {
  response.set({
    'Cross-Origin-Opener-Policy': 'same-origin',
    'Cross-Origin-Embedder-Policy': 'require-corp',
    'Cross-Origin-Resource-Policy': 'same-origin',
    'Content-Security-Policy': CONTENT_POLICY,
    'X-Content-Type-Options': 'nosniff',
    'Referrer-Policy': 'no-referrer',
  })
  next()
}

/** Manifest and pieces; only what the manifest names exists. Pages elsewhere may fetch them too. */
function addModelRoutes(app: Express, withId: (id: string) => HostedModel | undefined): void {
  const piecesOf = new WeakMap<Manifest, ReadonlySet<string>>()
  const isPiece = (manifest: Manifest, hash: string): boolean => {
    const known = piecesOf.get(manifest) ?? piecesIn(manifest)
    piecesOf.set(manifest, known)
    return known.has(hash)
  }
  app.use('/models', (_request, response, next) => {
    response.set({
      'Cross-Origin-Resource-Policy': 'cross-origin',
      'Access-Control-Allow-Origin': '*',
    })
    next()
  })
  app.get('/models/:id/manifest.json', (request, response, next) => {
    const model = withId(request.params.id)
    if (model === undefined) {
      next()
      return
    }
    // The model behind a name can be built anew, so the manifest is asked for again each time.
    response.set('Cache-Control', 'no-cache')
    // As it is served: the file may have been replaced meanwhile.
    response.json(model.manifest)
  })
  app.get('/models/:id/pieces/:hash', (request, response, next) => {
    const { id, hash } = request.params
    const model = withId(id)
    if (model === undefined || !isPiece(model.manifest, hash)) {
      next()
      return
    }
    response.set('Cache-Control', `public, max-age=${YEAR_SECONDS}, immutable, no-transform`)
    response.set('ETag', `"${hash}"`)
    response.type('application/octet-stream')
    sendFile(response, join(model.directory, 'pieces', hash), next)
  })
}

function piecesIn({ blocks, files }: Manifest): ReadonlySet<string> {
  return new Set([...blocks.flatMap(blockPieces), ...Object.values(files)].map((one) => one.sha256))
}

/** Range, length and conditional requests by express; the headers above stay. */
function sendFile(response: Response, path: string, next: NextFunction): void {
  response.sendFile(path, { cacheControl: false, dotfiles: 'allow' }, (error) => {
    // A browser that goes away in the middle is no failure.
    if (error && !response.headersSent) next(error)
  })
}

function addSite(app: Express, siteDir: string): void {
  for (const [path, file] of Object.entries(PAGES))
    app.get(path, (_request, response, next) => {
      response.set('Cache-Control', 'no-cache')
      sendFile(response, join(siteDir, file), next)
    })
  app.use(
    express.static(siteDir, {
      index: false,
      redirect: false,
      setHeaders(response, path) {
        // Built files carry a hash of their content in the name.
        const hashed = path.startsWith(join(siteDir, 'assets'))
        response.setHeader(
          'Cache-Control',
          hashed ? `public, max-age=${YEAR_SECONDS}, immutable` : 'no-cache',
        )
      },
    }),
  )
}

/** Faults as JSON, so that an HTML page is never taken for a piece. */
function onError(thrown: unknown, _request: Request, response: Response, next: NextFunction): void {
  if (response.headersSent) {
    next(thrown)
    return
  }
  const status = statusOf(thrown)
  if (status < 500)
    sendError(response, status, { code: 'bad-request', message: `refused with status ${status}` })
  else sendError(response, 500, { code: 'internal', message: toCrowdError(thrown).message })
}

/** Errors of express carry a status; a missing file is 404. */
function statusOf(thrown: unknown): number {
  if (typeof thrown !== 'object' || thrown === null || !('status' in thrown)) return 500
  return typeof thrown.status === 'number' ? thrown.status : 500
}

function sendError(
  response: Response,
  status: number,
  error: { readonly code: ErrorCode; readonly message: string },
): void {
  response.removeHeader('ETag')
  response.set('Cache-Control', 'no-store')
  response.status(status).json({ error: { ...error, hint: ERROR_CODES[error.code] } })
}
