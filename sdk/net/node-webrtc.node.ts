import type * as polyfill from 'node-datachannel/polyfill'
import type { Options } from 'simple-peer'

type Wrtc = NonNullable<Options['wrtc']>

type Description = RTCSessionDescriptionInit

/**
 * node-datachannel's WebRTC in the shape that simple-peer wants: it writes to the descriptions that it is given,
 * which the library's own only let it read.
 *
 * @param bindAddress the only local address to use, for machines that have none but loopback
 */
export function createWrtc(library: typeof polyfill, bindAddress: string | null): Wrtc {
  provideErrorClass(library.RTCError)

  class PeerConnection extends library.RTCPeerConnection {
    constructor(config: RTCConfiguration = {}) {
      super({
        iceServers: usable(config.iceServers ?? []),
        ...(config.iceTransportPolicy === undefined
          ? {}
          : { iceTransportPolicy: config.iceTransportPolicy }),
        // Goes through to the native library, whose types the polyfill leaves out.
        ...(bindAddress === null ? {} : ({ bindAddress } as RTCConfiguration)),
      })
    }
    override async createOffer(): Promise<Description> {
      return plain((await super.createOffer()) as Description)
    }
    override async createAnswer(): Promise<Description> {
      return plain((await super.createAnswer()) as Description)
    }
    override async setLocalDescription(description: Description): Promise<void> {
      await super.setLocalDescription(plain(description))
    }
    override async setRemoteDescription(description: Description): Promise<void> {
      await super.setRemoteDescription(plain(description))
    }
    // The two getters give what simple-peer reads of a description, not the whole class.
    override get localDescription(): RTCSessionDescription {
      return plain(super.localDescription) as RTCSessionDescription
    }
    override get remoteDescription(): RTCSessionDescription {
      return plain(super.remoteDescription) as RTCSessionDescription
    }
  }

  class SessionDescription implements Description {
    readonly type: RTCSdpType
    readonly sdp: string
    constructor({ type, sdp = '' }: Description) {
      this.type = type
      this.sdp = sdp
    }
  }

  const wrtc = {
    RTCPeerConnection: PeerConnection,
    RTCSessionDescription: SessionDescription,
    RTCIceCandidate: library.RTCIceCandidate,
  }
  // What simple-peer calls of a browser's classes; the rest of them it leaves alone.
  return wrtc as unknown as Wrtc
}

/** A copy that may be written to. */
function plain({ type, sdp }: Description): Description {
  return sdp === undefined ? { type } : { type, sdp }
}

/** The library refuses a list with a server that it can't use, and does TURN over UDP only. */
function usable(servers: readonly RTCIceServer[]): RTCIceServer[] {
  return servers
    .map(({ urls, ...login }) => ({ ...login, urls: [urls].flat().filter(isUsable) }))
    .filter(({ urls }) => urls.length > 0)
}

function isUsable(url: string): boolean {
  return /^(stun|turn):/.test(url) && !url.includes('transport=tcp')
}

/** The library's channels name the class RTCError without importing it: a failing channel would end the process. */
function provideErrorClass(errorClass: unknown): void {
  if (!('RTCError' in globalThis)) Object.assign(globalThis, { RTCError: errorClass })
}
