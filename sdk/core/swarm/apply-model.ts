import { STRIKES_MAX } from './apply-faults.ts'
import type { SwarmEvent } from './events.ts'
import type { ModelChange, PeerState, SwarmState } from './state.ts'

type EventOf<Kind extends SwarmEvent['kind']> = Extract<SwarmEvent, { kind: Kind }>

const NOTHING: Pick<ModelChange, 'step' | 'next' | 'former' | 'error'> = {
  step: '',
  next: null,
  former: null,
  error: null,
}

/** The last wish counts: an older one that isn't served yet is dropped. */
export function modelWanted(
  state: SwarmState,
  { name, step }: EventOf<'model-wanted'>,
  now: number,
): SwarmState {
  const { change } = state
  const since = isPreparing(change, name) ? change.since : now
  return {
    ...state,
    change: { ...NOTHING, name, phase: 'preparing', since, step },
    changeFailure: null,
  }
}

/** Ready to be served as soon as no answer runs. A wish that another one replaced meanwhile is no more. */
export function modelChosen(
  state: SwarmState,
  { name, served }: EventOf<'model-chosen'>,
  now: number,
): SwarmState {
  if (!isPreparing(state.change, name)) return state
  // Already served, as it stands: nothing has to change.
  if (served.model.id === state.model.id && served.model.revision === state.model.revision)
    return { ...state, change: null }
  return {
    ...state,
    change: { ...NOTHING, name, phase: 'draining', since: now, next: served },
  }
}

export function modelRefused(
  state: SwarmState,
  { name, error }: EventOf<'model-refused'>,
): SwarmState {
  if (!isPreparing(state.change, name)) return state
  return { ...state, change: null, changeFailure: { name, error } }
}

function isPreparing(change: ModelChange | null, name: string): change is ModelChange {
  return change?.phase === 'preparing' && change.name === name
}

/** Every device begins anew: what it holds is of another model, and it must tell what it has stored of this one. */
export function modelSwitched(
  state: SwarmState,
  { name, served, failure }: EventOf<'model-switched'>,
  now: number,
): SwarmState {
  const { model, minStages } = state
  // After a way back there is none: the devices hold the former model or nothing can be done.
  const former = failure === null ? { model, minStages } : null
  return {
    ...state,
    ...served,
    change: { ...NOTHING, name, phase: 'loading', since: now, former },
    changeFailure: failure,
    peers: new Map([...state.peers].map(([id, peer]) => [id, emptied(peer, now)])),
    unassigned: [{ start: 0, end: served.model.blocks.length }],
    plan: null,
    route: null,
    retained: new Map(),
    topology: state.topology + 1,
    links: state.links + 1,
  }
}

/** A device that could not load one model may well hold another. */
function emptied(peer: PeerState, now: number): PeerState {
  return {
    ...peer,
    assignment: null,
    stepMs: null,
    speed: null,
    pledged: false,
    pledgeDueSince: now,
    setAside: peer.strikes >= STRIKES_MAX ? peer.setAside : null,
  }
}
