import { randomBytes, randomInt } from 'node:crypto'
import { createServer as createHttpServer, type Server as HttpServer } from 'node:http'
import { createServer as createHttpsServer, type Server as HttpsServer } from 'node:https'
import { performance } from 'node:perf_hooks'
import { CrowdError, toCrowdError } from '../sdk/core/errors.ts'
import type { SwarmEvent } from '../sdk/core/swarm/events.ts'
import type { SwarmState } from '../sdk/core/swarm/state.ts'
import type { SwarmSnapshot } from '../sdk/protocol/swarm-snapshot.ts'
import type { Tokenizer } from '../sdk/index.node.ts'
import type { Express } from 'express'
import { createAdminApi } from './admin-api.ts'
import { adminToken } from './admin-token.ts'
import { createAdmission, type Admission } from './admission.ts'
import { loadCertificate } from './certificate.ts'
import type { Config } from './config.ts'
import { createGuard, type Guard } from './guard.ts'
import type { HostedModel } from './hosted-model.ts'
import { createHostedModels, type HostedModels } from './hosted-models.ts'
import { createHttpApp } from './http-app.ts'
import { createHostMetrics, type HostMetrics } from './metrics.ts'
import type { ModelLibrary } from './model-library.ts'
import { createModelSwitch } from './model-switch.ts'
import { openApi } from './open-api.ts'
import { poolSecret } from './pool-secret.ts'
import { keepServingMarks, type ServingMarks } from './serving-marks.ts'
import { createSocketGateway } from './socket-gateway.ts'
import { withoutNames } from './swarm-snapshot.ts'
import { createSwarmService, type SwarmService } from './swarm-service.ts'
import { hostUrls, lanAddresses, type HostUrls } from './urls.ts'

export type HostDeps = {
  /** The model that is served first, cut and ready. @throws CrowdError model-not-found, model-invalid, model-unsupported */
  prepareModel(config: Config): Promise<HostedModel>
  /** The models that may be served later. */
  openLibrary(config: Config): ModelLibrary
  /** The model's tokenizer, for the API. @throws CrowdError model-invalid, model-unsupported */
  openTokenizer(model: HostedModel): Promise<Tokenizer>
  /** The built pages. */
  readonly siteDir: string
  /** Default: this machine's. */
  readonly addresses?: readonly string[]
  /** One line for whoever runs the host: a fault that it survived. */
  log(line: string): void
  /** Hears of everything that happens in the swarm, once it was applied. */
  observe?(event: SwarmEvent, after: SwarmState): void
}

export type StartedHost = {
  /** The port that it really listens on. */
  readonly port: number
  readonly urls: HostUrls
  /** null in an open pool. */
  readonly secret: string | null
  /** What proves the operator. */
  readonly adminToken: string
  /** Served first. */
  readonly model: HostedModel
}

export interface Host {
  /**
   * @throws CrowdError port-taken, bad-option (address, certificate), storage-failed, model-not-found,
   * model-invalid, model-unsupported
   */
  start(): Promise<StartedHost>
  /** The swarm; also for callers in this process. @throws CrowdError internal before start() */
  service(): SwarmService
  /** Ends every connection and frees the port. Awaited, idempotent, also before or during start(). */
  close(): Promise<void>
}

/** Addresses shown on pages. */
const ORIGINS_MAX = 4
/** How often time limits are checked and due snapshots sent. */
const TICK_MS = 100

type Running = {
  readonly service: SwarmService
  stop(): Promise<void>
}

/**
 * The host: pages, model files, signaling and the swarm, in one server on one port.
 *
 * @example
 * const host = createHost(parseConfig({ port: '0' }, {}), deps)
 * const { urls } = await host.start()
 */
export function createHost(config: Config, deps: HostDeps): Host {
  let running: Running | null = null
  let starting: Promise<StartedHost> | null = null
  let closing: Promise<void> | null = null

  async function start(): Promise<StartedHost> {
    const addresses = deps.addresses ?? lanAddresses()
    const secret = config.public ? null : await poolSecret(config.dataDir)
    const token = await adminToken(config.dataDir)
    const { dataDir } = config
    const certificate = await loadCertificate(config.tls, { dataDir, addresses, nowMs: Date.now() })
    const model = await deps.prepareModel(config)
    let origins: readonly string[] = []
    const metrics = createHostMetrics(() => service.state())
    const service = createSwarmService({
      model: model.manifest,
      minStages: minStages(config, model),
      iceServers: config.iceServers,
      now: () => performance.now(),
      firstSession: randomInt(1, 0xffff_ffff),
      pairPrefix: randomBytes(6).toString('hex'),
      origins: () => origins,
      observe(event, after) {
        metrics.observe(event, after)
        deps.observe?.(event, after)
      },
    })
    const admission = createAdmission(secret)
    const models = createHostedModels(model, () => service.state())
    const parts: Parts = { config, deps, service, admission, models, metrics, token }
    const app = openApp(parts)
    const server = certificate ? createHttpsServer(certificate, app) : createHttpServer(app)
    const marks = await keepServingMarks(() => models.needed().map(({ directory }) => directory))
    await listen(server, config).catch(async (thrown: unknown) => {
      await marks.close()
      throw thrown
    })
    const guard = createGuard((line) => deps.log(line))
    running = run({ server, service, admission, guard, marks })
    if (closing) throw new CrowdError('aborted', 'the host was closed while it started')
    const port = portOf(server)
    const secure = certificate !== null
    const urls = hostUrls({ port, host: config.host, secure, secret, addresses })
    // Without the fragment, which holds the secret.
    origins = urls.lanJoin.slice(0, ORIGINS_MAX).map((url) => new URL(url).origin)
    return { port, urls, secret, adminToken: token, model }
  }

  async function stop(): Promise<void> {
    // A start that failed has freed what it took; its caller has the error.
    await starting?.catch(() => undefined)
    await running?.stop()
  }

  return {
    start() {
      if (closing) throw new CrowdError('aborted', 'the host was closed')
      starting ??= start()
      return starting
    },
    service() {
      if (!running) throw new CrowdError('internal', 'the host has not started')
      return running.service
    },
    close() {
      closing ??= stop()
      return closing
    },
  }
}

function run(parts: {
  readonly server: HttpServer | HttpsServer
  readonly service: SwarmService
  readonly admission: Admission
  readonly guard: Guard
  readonly marks: ServingMarks
}): Running {
  const { server, service, guard, marks } = parts
  const gateway = createSocketGateway(parts)
  const timer = setInterval(() => guard('the timer', () => service.tick()), TICK_MS)
  return {
    service,
    async stop() {
      clearInterval(timer)
      service.close()
      // Answers that stream say why they end.
      await new Promise<void>((resolve) => {
        setImmediate(resolve)
      })
      // Downloads in progress would hold the server open; socket.io closes the server itself.
      server.closeAllConnections()
      await gateway.close()
      await marks.close()
    },
  }
}

/** What a running host is made of, before it listens. */
type Parts = {
  readonly config: Config
  readonly deps: HostDeps
  readonly service: SwarmService
  readonly admission: Admission
  readonly models: HostedModels
  readonly metrics: HostMetrics
  readonly token: string
}

/** Everything over HTTP. */
function openApp({ config, deps, service, admission, models, metrics, token }: Parts): Express {
  const library = deps.openLibrary(config)
  const now = (): number => performance.now()
  const log = (line: string): void => deps.log(line)
  const api = openApi({
    served: () => models.served(),
    service,
    admission,
    dataDir: config.dataDir,
    openTokenizer: (opened) => deps.openTokenizer(opened),
    now,
    log,
  })
  const modelSwitch = createModelSwitch({
    library,
    models,
    service,
    makeReady: api.makeReady,
    minStages: (model) => minStages(config, model),
    log,
  })
  return createHttpApp({
    served: () => models.served().manifest,
    modelWithId: (id) => models.withId(id),
    siteDir: deps.siteDir,
    api: api.router,
    admin: createAdminApi({
      library,
      models,
      modelSwitch,
      state: () => service.state(),
      token,
      knowsSecret: (given) => admission.knows(given),
      now,
    }),
    health: () => api.health.check(),
    metrics,
    swarm: (authorization) => visibleSwarm(service.snapshot(), admission, authorization),
  })
}

/** Built-in models show the ring from two devices on. */
function minStages({ stages }: Config, { isBuiltin }: HostedModel): number {
  if (stages !== 'auto') return stages
  return isBuiltin ? 2 : 1
}

/** Names only for those who know the secret. */
function visibleSwarm(
  snapshot: SwarmSnapshot,
  admission: Admission,
  authorization: string | undefined,
): SwarmSnapshot {
  const given = /^Bearer (.+)$/i.exec(authorization ?? '')?.[1] ?? ''
  return admission.knows(given) ? snapshot : withoutNames(snapshot)
}

function listen(server: HttpServer | HttpsServer, config: Config): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once('error', (cause: NodeJS.ErrnoException) => reject(listenError(cause, config)))
    server.listen(config.port, config.host, resolve)
  })
}

function listenError(cause: NodeJS.ErrnoException, config: Config): CrowdError {
  const make = (code: 'port-taken' | 'bad-option', message: string): CrowdError =>
    new CrowdError(code, message, { cause })
  if (cause.code === 'EADDRINUSE')
    return make('port-taken', `port ${config.port} is used by another program`)
  if (cause.code === 'EACCES')
    return make('port-taken', `port ${config.port} may not be used without more rights`)
  if (cause.code === 'EADDRNOTAVAIL' || cause.code === 'ENOTFOUND')
    return make('bad-option', `--host: ${config.host} is no address of this machine`)
  return toCrowdError(cause)
}

function portOf(server: HttpServer | HttpsServer): number {
  const address = server.address()
  if (typeof address === 'object' && address !== null) return address.port
  throw new CrowdError('internal', 'the server has no port')
}
