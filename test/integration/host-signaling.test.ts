import { createServer } from 'node:http'
import type { Socket as NetSocket } from 'node:net'
import type { PairId, PeerId } from '../../sdk/core/ids.ts'
import type { ServerMessage } from '../../sdk/protocol/server-to-client.ts'
import { createAdmission } from '../../signaling/admission.ts'
import type { PeerConnection, PeerHandle } from '../../signaling/peer-connection.ts'
import { createSocketGateway } from '../../signaling/socket-gateway.ts'
import { createSwarmService, type SwarmService } from '../../signaling/swarm-service.ts'
import {
  describeSignalingHostContract,
  type SignalingHost,
} from '../contracts/signaling-host.contract.ts'
import { pledgeOf } from '../support/fake-swarm.ts'
import { modelOf } from '../support/host-fixtures.ts'

const SECRET = 'a-secret-of-this-pool'

describeSignalingHostContract('the host', makeHost)

/** The real gateway and service; the test's hands are on the seam between the two. */
async function makeHost(): Promise<SignalingHost> {
  const model = modelOf()
  const service = createSwarmService({
    model,
    minStages: 2,
    iceServers: [],
    now: () => performance.now(),
    firstSession: 1,
    pairPrefix: 't',
    origins: () => [],
  })
  const server = createServer()
  const wires = new Set<NetSocket>()
  server.on('connection', (wire) => {
    wires.add(wire)
    wire.on('close', () => wires.delete(wire))
  })
  const handles = new Map<PeerId, PeerHandle>()
  const seam: Pick<SwarmService, 'join'> = {
    join(entry, connection) {
      const handle = service.join(entry, servesAtOnce(connection, entry.peer, handles))
      handles.set(entry.peer, handle)
      return handle
    },
  }
  const gateway = createSocketGateway({
    server,
    admission: createAdmission(SECRET),
    service: seam,
    guard: (_what, task) => task(),
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const address = server.address()
  if (typeof address !== 'object' || address === null) throw new Error('no port')
  return {
    url: `http://127.0.0.1:${address.port}`,
    secret: SECRET,
    dropConnections() {
      for (const wire of wires) wire.destroy()
    },
    // Neighbours of a complete ring are linked, the first stage as the initiator.
    openPair(initiator, other): PairId {
      for (const peer of [initiator, other]) handles.get(peer)?.receive(pledgeOf(1e9))
      const pair = [...service.state().pairs.values()].find((one) => one.from === initiator)
      if (pair?.to !== other) throw new Error('the ring was not linked')
      return pair.pair
    },
    async close() {
      service.close()
      await gateway.close()
    },
  }
}

/** Reports every assignment as ready on behalf of the client, which only speaks signaling here. */
function servesAtOnce(
  connection: PeerConnection,
  peer: PeerId,
  handles: ReadonlyMap<PeerId, PeerHandle>,
): PeerConnection {
  return {
    send(message: ServerMessage) {
      connection.send(message)
      if (message.kind !== 'assign' || message.range === null) return
      const bytes = { doneBytes: 1, totalBytes: 1, fetchedBytes: 1 }
      const { assignment } = message
      handles.get(peer)?.receive({ kind: 'stage-state', assignment, state: 'ready', ...bytes })
    },
    sendRelay: (pair, bytes) => connection.sendRelay(pair, bytes),
    close: (reason) => connection.close(reason),
  }
}
