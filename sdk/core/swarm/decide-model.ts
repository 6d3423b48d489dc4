import type { WireError } from '../errors.ts'
import { MODEL_DRAIN_MS } from '../limits.ts'
import { describeRange } from '../model/block-range.ts'
import { planSwarm } from '../plan/assign.ts'
import type { Decision } from './events.ts'
import type { ModelChange, ServedModel, SwarmState } from './state.ts'
import { bestRoute, isComplete, isOver, planDevices } from './views.ts'

/** The next step of a change of the model, once it may be made. */
export function decideModel(state: SwarmState, now: number): readonly Decision[] {
  const { change } = state
  if (change === null) return []
  if (change.phase === 'draining') return drain(state, change, now)
  return change.phase === 'loading' ? settle(state, change) : []
}

/** Answers that run have a while to end; those that wait were asked of the former model and can't have another's. */
function drain(state: SwarmState, change: ModelChange, now: number): readonly Decision[] {
  if (change.next === null) return []
  const open = [...state.requests.values()].filter((request) => !isOver(request))
  const isLate = now - change.since > MODEL_DRAIN_MS
  const ended = open.filter((request) => isLate || request.phase === 'queued')
  const error = changedError(change.next.model.id)
  const ends = ended.map(({ key }): Decision => ({
    kind: 'request-ended',
    key,
    reason: 'error',
    error,
  }))
  if (ended.length < open.length) return ends
  const { name, next } = change
  return [...ends, { kind: 'model-switched', name, served: next, failure: null }]
}

function changedError(next: string): WireError {
  return { code: 'model-changed', message: `the host goes on with another model: ${next}` }
}

/** Where the new model can't be loaded by the devices that are there, the former one is served again. */
function settle(state: SwarmState, change: ModelChange): readonly Decision[] {
  if (isComplete(state)) return [{ kind: 'model-settled' }]
  const { former, error } = change
  const isPlanned = state.planned === state.topology
  if (former === null || error === null || !isPlanned || state.unassigned.length === 0) return []
  const failure = { name: change.name, error }
  return [{ kind: 'model-switched', name: former.model.id, served: former, failure }]
}

/**
 * Why a model must not replace the one that is served: the devices answer now and could not hold the new one.
 * null where they can, and where nothing is lost since they don't answer now either.
 */
export function whyTooLarge(state: SwarmState, { model, minStages }: ServedModel): string | null {
  if (bestRoute(state, false) === null) return null
  const devices = planDevices(state).map((device) => ({
    ...device,
    msPerLayer: null,
    range: null,
    ready: false,
    keep: null,
  }))
  const { missing } = planSwarm({ model, devices, minStages })
  if (missing.length === 0) return null
  const what = missing.map((range) => describeRange(range, model.layerCount)).join(', ')
  return `the devices here can't hold all of ${model.id}: no room for ${what}`
}
