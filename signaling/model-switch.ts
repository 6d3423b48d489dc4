import { CrowdError, toCrowdError } from '../sdk/core/errors.ts'
import { whyTooLarge } from '../sdk/core/swarm/decide-model.ts'
import type { HostedModel } from './hosted-model.ts'
import type { HostedModels } from './hosted-models.ts'
import type { ModelLibrary } from './model-library.ts'
import type { SwarmService } from './swarm-service.ts'

export type ModelSwitchDeps = {
  readonly library: ModelLibrary
  readonly models: Pick<HostedModels, 'add'>
  readonly service: Pick<SwarmService, 'state' | 'model'>
  /** Everything else that serving it takes. @throws CrowdError where that fails: it is not served then */
  makeReady(model: HostedModel): Promise<void>
  minStages(model: HostedModel): number
  /** One line for whoever runs the host. */
  log(line: string): void
}

/** Brings a host from one model to another while it runs. */
export type ModelSwitch = {
  /**
   * Begins the change; how it goes on is in the swarm's state. A newer call replaces an older one that is not
   * served yet.
   * @param anyway also where the devices that are here can't hold it
   * @throws CrowdError model-not-found
   */
  use(name: string, anyway: boolean): Promise<void>
}

export function createModelSwitch(deps: ModelSwitchDeps): ModelSwitch {
  const { library, service } = deps
  /** The same model is cut once, however often it is asked for; whoever asked last hears of it. */
  const opening = new Map<string, { opened: Promise<HostedModel>; tell(step: string): void }>()
  let newest = 0

  function open(name: string, onStep: (step: string) => void): Promise<HostedModel> {
    const under = opening.get(name)
    if (under !== undefined) {
      under.tell = onStep
      return under.opened
    }
    const begun = {
      opened: library.open(name, (step) => begun.tell(step)).finally(() => opening.delete(name)),
      tell: onStep,
    }
    opening.set(name, begun)
    return begun.opened
  }

  async function carryOut(name: string, turn: number, anyway: boolean): Promise<void> {
    const isReplaced = (): boolean => turn !== newest
    const step = (text: string): void => {
      if (!isReplaced()) service.model({ kind: 'model-wanted', name, step: text })
    }
    try {
      const model = await open(name, step)
      step('opening the tokenizer')
      await deps.makeReady(model)
      if (isReplaced()) return
      const served = { model: model.manifest, minStages: deps.minStages(model) }
      const reason = anyway ? null : whyTooLarge(service.state(), served)
      if (reason !== null) throw new CrowdError('model-too-large', reason)
      deps.models.add(model)
      service.model({ kind: 'model-chosen', name, served })
    } catch (thrown) {
      const error = toCrowdError(thrown)
      if (isReplaced()) return
      deps.log(`the model ${name} is not served: ${error.message}`)
      service.model({ kind: 'model-refused', name, error: error.toWire() })
    }
  }

  return {
    async use(name, anyway) {
      const known = (await library.list()).map((model) => model.name)
      if (!known.includes(name))
        throw new CrowdError(
          'model-not-found',
          `this host knows no model "${name.slice(0, 80)}"; it knows ${known.join(', ')}`,
        )
      newest += 1
      service.model({ kind: 'model-wanted', name, step: 'opening the model' })
      void carryOut(name, newest, anyway)
    },
  }
}
