import { describeSignalingContract } from '../contracts/signaling.contract.ts'
import { createFakeSignaling, testWelcome } from './fake-signaling.ts'
import { createSignalingHub, testOrder } from './signaling-hub.ts'

describeSignalingContract('the fake', () => {
  const signaling = createFakeSignaling()
  return Promise.resolve({
    signaling,
    sent: () => signaling.sent,
    relayed: () => signaling.relayed,
    welcome: signaling.open,
    say: signaling.deliver,
    relay: signaling.deliverRelayed,
    lose: () => signaling.setState({ kind: 'lost', reason: 'cable' }),
    refuse: (error) => signaling.setState({ kind: 'refused', error }),
    close: () => Promise.resolve(),
  })
})

describeSignalingContract('one end of the hub', () => {
  const { pair } = testOrder(true)
  const { a, b } = createSignalingHub(pair)
  const relayed: Uint8Array[] = []
  b.signaling.relay.onMessage((_pair, bytes) => relayed.push(bytes))
  a.setState({ kind: 'connecting' })
  return Promise.resolve({
    signaling: a.signaling,
    sent: () => a.signals,
    relayed: () => relayed,
    welcome: () => a.setState({ kind: 'open', welcome: testWelcome() }),
    say: a.deliver,
    relay: (_pair, bytes) => void b.signaling.relay.send(pair, bytes),
    lose: () => a.setState({ kind: 'lost', reason: 'cable' }),
    refuse: (error) => a.setState({ kind: 'refused', error }),
    close: () => Promise.resolve(),
  })
})
