import type * as polyfill from 'node-datachannel/polyfill'
import { networkInterfaces } from 'node:os'
import SimplePeer from 'simple-peer'
import { toCrowdError } from '../core/errors.ts'
import { createWrtc } from './node-webrtc.node.ts'
import type { MakePeerLink } from './peer-link.ts'
import { createSimplePeerLinks, type SimplePeerInstance } from './simple-peer-link.ts'
import { withholdCandidates } from './withhold-candidates.ts'

/**
 * Bulk bytes in flight of a Node process, each way. With more, node-datachannel starves the other lane of the same
 * connection: its heartbeats then wait for seconds.
 */
export const NODE_CREDIT_BYTES = 128 * 1024

export type NodePeerLinks = {
  /** null where the native library doesn't load: the relay is used then. */
  readonly makePeerLink: MakePeerLink | null
  /** Ends the library's threads, so that the process can end. After every link was closed. */
  close(): void
}

export type NodePeerLinksDeps = {
  /** For people: once, where there is no WebRTC here. */
  readonly log: (event: string) => void
  /** How the native library is loaded; replaced in tests. */
  readonly load?: () => Promise<typeof polyfill>
  readonly addresses?: typeof networkInterfaces
}

/** Direct links of a Node process, by simple-peer over node-datachannel. */
export async function openNodePeerLinks(deps: NodePeerLinksDeps): Promise<NodePeerLinks> {
  const { load = () => import('node-datachannel/polyfill'), addresses = networkInterfaces } = deps
  try {
    const wrtc = createWrtc(await load(), onlyLoopback(addresses()) ? '127.0.0.1' : null)
    const { cleanup } = await import('node-datachannel')
    return {
      makePeerLink: withholdCandidates(
        createSimplePeerLinks({
          createPeer: (options) =>
            // Its types leave out the parts that its documentation does (`_pc`, `destroyed`); they exist.
            new SimplePeer({ ...options, trickle: true, wrtc }) as unknown as SimplePeerInstance,
        }),
      ),
      close: cleanup,
    }
  } catch (thrown) {
    const { message } = toCrowdError(thrown)
    deps.log(`no WebRTC on this machine, the host relays instead: ${message}`)
    return { makePeerLink: null, close: () => undefined }
  }
}

/** The library finds no way to itself on such a machine, unless it is told the address. */
function onlyLoopback(interfaces: ReturnType<typeof networkInterfaces>): boolean {
  return Object.values(interfaces)
    .flatMap((addresses) => addresses ?? [])
    .every(({ internal }) => internal)
}
