import type { Manifest } from '../core/model/manifest.ts'
import type { Connector } from '../net/channel.ts'
import type { ServerMessage, ServerMessageOf } from '../protocol/server-to-client.ts'
import type { Links } from './links.ts'
import type { PieceLinks } from './piece-links.ts'
import type { Sessions } from './sessions.ts'

export type DispatchTargets = {
  readonly links: Links
  readonly pieceLinks: Pick<PieceLinks, 'open' | 'close'>
  readonly sessions: Sessions
  readonly connector: Pick<Connector, 'accept'>
  manifest(): Manifest | null
  modelChanged(message: ServerMessageOf<'model'>): Promise<void>
  assign(message: ServerMessageOf<'assign'>): Promise<void>
  /** Something failed that no session or link can tell the host about. */
  fail(thrown: unknown): void
}

/** Which part of a worker a message of the host is for. */
export function dispatch(message: ServerMessage, to: DispatchTargets): void {
  switch (message.kind) {
    case 'model':
      to.modelChanged(message).catch(to.fail)
      return
    case 'assign':
      to.assign(message).catch(to.fail)
      return
    case 'pair-open':
      if (message.purpose === 'pieces') to.pieceLinks.open(message)
      else to.links.open(message)
      return
    case 'pair-close':
      to.links.close(message.pair, message.reason)
      to.pieceLinks.close(message.pair, message.reason)
      return
    case 'signal':
      to.connector.accept(message.pair, message.attempt, message.data)
      return
    case 'session-open': {
      const manifest = to.manifest()
      if (manifest !== null) to.sessions.open(message, manifest).catch(to.fail)
      return
    }
    case 'session-start':
      to.sessions.start(message)
      return
    case 'session-close':
      to.sessions.close(message).catch(to.fail)
      return
    // Signaling takes the first two; the rest is for askers and pages.
    case 'welcome':
    case 'refused':
    case 'ask-accepted':
    case 'ask-token':
    case 'ask-end':
    case 'swarm':
      return
  }
}
