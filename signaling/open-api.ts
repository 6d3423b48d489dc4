import { randomBytes, randomInt } from 'node:crypto'
import type { Request, Router } from 'express'
import { toCrowdError } from '../sdk/core/errors.ts'
import type { Tokenizer } from '../sdk/index.node.ts'
import type { Admission } from './admission.ts'
import { createApiKeys } from './api-keys.ts'
import { createAccess, type Caller } from './api/access.ts'
import { createApiRouter } from './api/api-router.ts'
import { createHealth, type Health } from './api/health.ts'
import type { SeatDeps } from './api/seat.ts'
import type { HostedModel } from './hosted-model.ts'
import { createKeyCheck } from './key-check.ts'
import type { SwarmService } from './swarm-service.ts'

export type OpenApiDeps = {
  readonly model: HostedModel
  readonly service: SwarmService
  readonly admission: Admission
  readonly dataDir: string
  /** @throws CrowdError model-invalid, model-unsupported */
  openTokenizer(model: HostedModel): Promise<Tokenizer>
  /** Monotonic, ms. */
  now(): number
  /** One line for whoever runs the host. */
  log(line: string): void
}

export type OpenedApi = { readonly router: Router; readonly health: Health }

/** The API of a host, with this machine's clock, randomness and keys. */
export function openApi(deps: OpenApiDeps): OpenedApi {
  const { model, service, now } = deps
  const seat: SeatDeps = {
    service,
    manifest: model.manifest,
    randomId: () => randomBytes(12).toString('hex'),
    later(ms, task) {
      const timer = setTimeout(task, ms)
      return () => clearTimeout(timer)
    },
  }
  const access = createAccess({
    check: createKeyCheck(createApiKeys(deps.dataDir), now, tellOnce(deps.log)),
    knowsSecret: (given) => deps.admission.knows(given),
    now,
  })
  const router = createApiRouter({
    ...seat,
    manifest: model.manifest,
    tokenizer: openOnce(() => deps.openTokenizer(model)),
    admit: (request, wanted) => access.admit(callerOf(request), wanted),
    enter: (caller, answers) => access.enter(caller, answers),
    randomSeed: () => randomInt(2 ** 32),
    nowS,
    startedS: nowS(),
  })
  return { router, health: createHealth({ ...seat, now }) }
}

function nowS(): number {
  return Math.floor(Date.now() / 1_000)
}

/** Anybody's request can make the same failure again and again: one line is enough. */
function tellOnce(log: (line: string) => void): (thrown: unknown) => void {
  let told = ''
  return (thrown) => {
    const { message } = toCrowdError(thrown)
    if (message !== told) log(`the API's keys: ${message}`)
    told = message
  }
}

/** Opens on first use and keeps what was opened; a failure is tried again. */
function openOnce<T>(open: () => Promise<T>): () => Promise<T> {
  let opened: Promise<T> | null = null
  return () => {
    if (opened !== null) return opened
    const opening = open()
    opened = opening
    opening.catch(() => {
      opened = null
    })
    return opening
  }
}

function callerOf(request: Request): Caller {
  return {
    authorization: request.get('authorization'),
    address: request.socket.remoteAddress ?? '',
  }
}
