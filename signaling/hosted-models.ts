import { CrowdError } from '../sdk/core/errors.ts'
import type { SwarmModel, SwarmState } from '../sdk/core/swarm/state.ts'
import type { HostedModel } from './hosted-model.ts'

/** The models that the swarm has to do with: the served one, and beside it the next or the former one. */
export type HostedModels = {
  served(): HostedModel
  /** All that devices may fetch now. */
  needed(): readonly HostedModel[]
  /** What devices may fetch under this id; of two builds the served one. */
  withId(id: string): HostedModel | undefined
  /** To be called before the swarm is told of it. Those that it has no more to do with are forgotten. */
  add(model: HostedModel): void
}

/** @param first is served when the host starts. */
export function createHostedModels(first: HostedModel, state: () => SwarmState): HostedModels {
  let models: readonly HostedModel[] = [first]

  function find(model: Pick<SwarmModel, 'id' | 'revision'>): HostedModel | undefined {
    return models.find(
      ({ manifest }) => manifest.id === model.id && manifest.revision === model.revision,
    )
  }

  function needed(): HostedModel[] {
    const { model: served, change } = state()
    const wanted = [served, change?.next?.model, change?.former?.model]
    return [...new Set(wanted.flatMap((one) => (one === undefined ? [] : (find(one) ?? []))))]
  }

  return {
    needed,
    served() {
      const found = find(state().model)
      if (found === undefined) throw new CrowdError('internal', 'the served model is not here')
      return found
    },
    withId(id) {
      const { model, change } = state()
      const wanted = [model, change?.next?.model, change?.former?.model]
      const one = wanted.find((candidate) => candidate?.id === id)
      return one === undefined ? undefined : find(one)
    },
    add(model) {
      models = [model, ...needed().filter((one) => one !== model)]
    },
  }
}
