// The pre-bundled build, since the plain one expects Node's globals and fails in a page.
import SimplePeer from 'simple-peer/simplepeer.min.js'
import type { DistantLanes } from './distant-lanes.ts'
import type { MakePeerLink } from './peer-link.ts'
import { createSimplePeerLinks, type SimplePeerInstance } from './simple-peer-link.ts'

/** Direct links for this page, or null where the browser has no WebRTC (or forbids it): the relay is used then. */
export function createBrowserPeerLinks(lanes?: DistantLanes): MakePeerLink | null {
  if (typeof RTCPeerConnection === 'undefined') return null
  return createSimplePeerLinks({
    ...(lanes === undefined ? {} : { lanes }),
    createPeer: (options) =>
      // Its types leave out the parts that its documentation does (`_pc`, `destroyed`); they exist.
      new SimplePeer({ ...options, trickle: true }) as unknown as SimplePeerInstance,
  })
}
