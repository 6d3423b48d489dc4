import { randomBytes, randomInt } from 'node:crypto'
import type { Request, Router } from 'express'
import { toCrowdError } from '../sdk/core/errors.ts'
import type { Tokenizer } from '../sdk/index.node.ts'
import type { Admission } from './admission.ts'
import { createApiKeys } from './api-keys.ts'
import type { ApiModel } from './api/api-model.ts'
import { createApiModels } from './api-models.ts'
import { createAccess, type Caller } from './api/access.ts'
import { createApiRouter } from './api/api-router.ts'
import { createHealth, type Health } from './api/health.ts'
import type { SeatDeps } from './api/seat.ts'
import type { HostedModel } from './hosted-model.ts'
import { createKeyCheck } from './key-check.ts'
import type { SwarmService } from './swarm-service.ts'

export type OpenApiDeps = {
  served(): HostedModel
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

export type OpenedApi = {
  readonly router: Router
  readonly health: Health
  /** Opens what answering with a model takes. @throws CrowdError model-invalid, model-unsupported */
  makeReady(model: HostedModel): Promise<void>
}

/** The API of a host, with this machine's clock, randomness and keys. */
export function openApi(deps: OpenApiDeps): OpenedApi {
  const { service, now } = deps
  const models = createApiModels(deps)
  const served = (): ApiModel => models.of(deps.served())
  const seat: Omit<SeatDeps, 'manifest'> = {
    service,
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
    served,
    admit: (request, wanted) => access.admit(callerOf(request), wanted),
    enter: (caller, answers) => access.enter(caller, answers),
    randomSeed: () => randomInt(2 ** 32),
    nowS,
    startedS: nowS(),
  })
  return {
    router,
    health: createHealth({ ...seat, served: () => served().manifest, now }),
    async makeReady(model) {
      const one = models.of(model)
      await one.tokenizer()
      await one.sampling()
    },
  }
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

function callerOf(request: Request): Caller {
  return {
    authorization: request.get('authorization'),
    address: request.socket.remoteAddress ?? '',
  }
}
