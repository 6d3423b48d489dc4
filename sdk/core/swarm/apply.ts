import * as faults from './apply-faults.ts'
import * as models from './apply-model.ts'
import * as pairs from './apply-pairs.ts'
import * as peers from './apply-peers.ts'
import * as requests from './apply-requests.ts'
import type { Decision, Observation, SwarmEvent } from './events.ts'
import { hostSlept } from './host-slept.ts'
import type { SwarmState } from './state.ts'

const OBSERVED: ReadonlySet<string> = new Set<Observation['kind']>([
  'peer-joined',
  'peer-dropped',
  'peer-left',
  'pledged',
  'stage-reported',
  'stats-reported',
  'link-reported',
  'beat',
  'host-slept',
  'relayed',
  'asked',
  'stage-ready',
  'token-chosen',
  'timings-reported',
  'step-reported',
  'model-wanted',
  'model-chosen',
  'model-refused',
])

/** The only way to a new state. `now` in ms. Events about what is gone change nothing. */
export function apply(state: SwarmState, event: SwarmEvent, now: number): SwarmState {
  return isObservation(event) ? observe(state, event, now) : settle(state, event, now)
}

function isObservation(event: SwarmEvent): event is Observation {
  return OBSERVED.has(event.kind)
}

function observe(state: SwarmState, event: Observation, now: number): SwarmState {
  switch (event.kind) {
    case 'peer-joined':
      return peers.peerJoined(state, event, now)
    case 'peer-dropped':
      return peers.peerDropped(state, event, now)
    case 'peer-left':
      return peers.peerGone(state, event.peer)
    case 'pledged':
      return peers.pledged(state, event, now)
    case 'stage-reported':
      return peers.stageReported(state, event, now)
    case 'stats-reported':
      return peers.statsReported(state, event, now)
    case 'link-reported':
      return pairs.linkReported(state, event, now)
    case 'beat':
      return requests.gotOn(peers.beat(state, event, now), event, now)
    case 'host-slept':
      return hostSlept(state, event.ms)
    case 'relayed':
      return pairs.relayed(state, event)
    case 'asked':
      return requests.asked(state, event, now)
    case 'stage-ready':
      return requests.stageReady(state, event)
    case 'token-chosen':
      return requests.tokenChosen(state, event, now)
    case 'timings-reported':
      return requests.timingsReported(state, event)
    case 'step-reported':
      return requests.stepReported(state, event)
    case 'model-wanted':
      return models.modelWanted(state, event, now)
    case 'model-chosen':
      return models.modelChosen(state, event, now)
    case 'model-refused':
      return models.modelRefused(state, event)
  }
}

function settle(state: SwarmState, event: Decision, now: number): SwarmState {
  switch (event.kind) {
    case 'struck':
      return faults.struck(state, event, now)
    case 'outgrown':
      return faults.outgrown(state, event, now)
    case 'peer-silent':
      return peers.peerSilent(state, event)
    case 'peer-forgotten':
      return peers.peerGone(state, event.peer)
    case 'pledge-expired':
      return peers.pledgeExpired(state, event.peer)
    case 'assigned':
      return peers.assigned(state, event)
    case 'planned':
      return { ...state, planned: state.topology, plan: event.plan, unassigned: event.plan.missing }
    case 'routed':
      return { ...state, routed: state.links, route: event.route }
    case 'pair-opened':
      return pairs.pairOpened(state, event, now)
    case 'pair-retried':
      return pairs.pairRetried(state, event, now)
    case 'pair-closed':
      return pairs.pairClosed(state, event)
    case 'sources-sought':
      return { ...state, sourcesSoughtAt: now }
    case 'session-opened':
      return requests.sessionOpened(state, event, now)
    case 'session-released':
      return requests.sessionReleased(state, event.session)
    case 'rows-freed':
      return requests.rowsFreed(state, event)
    case 'session-broken':
      return requests.sessionBroken(state, event, now)
    case 'session-started':
      return requests.sessionStarted(state, event, now)
    case 'request-ended':
      return requests.requestEnded(state, event, now)
    case 'model-switched':
      return models.modelSwitched(state, event, now)
    case 'model-settled':
      return { ...state, change: null }
  }
}
