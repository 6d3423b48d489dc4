import { CrowdError } from '../../sdk/core/errors.ts'
import type { Link } from '../../sdk/net/channel.ts'
import { createMemoryWire, type MemoryWire } from '../../sdk/net/memory-link.ts'
import { NO_CANDIDATES, type MakePeerLink } from '../../sdk/net/peer-link.ts'
import type { Timers } from '../../sdk/net/timers.ts'

/** How one try goes: it connects, hears nothing ever, breaks at once, or knows that it can't. */
export type TryFate = 'connects' | 'hangs' | 'breaks' | 'no candidates' | 'throws'

/**
 * Direct links without WebRTC: the initiator offers, the other answers, and the two ends of a memory wire are
 * handed out. The fate of each try is the test's.
 */
export function createFakePeerLinks(timers: Timers) {
  const wires = new Map<string, MemoryWire>()

  function maker(fates: readonly TryFate[]) {
    let tries = 0
    let open = 0
    const make: MakePeerLink = ({ order, onSignal }) => {
      tries += 1
      const fate = fates[Math.min(tries, fates.length) - 1] ?? 'connects'
      if (fate === 'throws') throw new CrowdError('provider-unavailable', 'no WebRTC today')
      let resolve: (link: Link) => void = () => undefined
      let reject: (error: CrowdError) => void = () => undefined
      const link = new Promise<Link>((done, failed) => {
        resolve = done
        reject = failed
      })
      link.catch(() => undefined)
      let own: Link | null = null
      let isOpen = true
      open += 1
      const finish = (wireName: string, end: 'a' | 'b') => {
        const wire = wires.get(wireName)
        if (wire === undefined) throw new Error('answer without an offer')
        own = wire[end]
        resolve(own)
      }
      if (fate === 'breaks') {
        queueMicrotask(() => reject(new CrowdError('link-closed', 'ice failed')))
      }
      if (fate === 'no candidates') {
        queueMicrotask(() => reject(new CrowdError('link-closed', NO_CANDIDATES)))
      }
      if (order.initiator && fate === 'connects') {
        const name = `wire ${wires.size}`
        wires.set(name, createMemoryWire({ timers }))
        onSignal({ offer: name })
      }
      return {
        link,
        accept(signal) {
          if (fate !== 'connects' || typeof signal !== 'object' || signal === null) return
          if ('offer' in signal && !order.initiator) {
            onSignal({ answer: signal.offer })
            finish(String(signal.offer), 'b')
          } else if ('answer' in signal && order.initiator) finish(String(signal.answer), 'a')
        },
        close() {
          if (isOpen) open -= 1
          isOpen = false
          reject(new CrowdError('link-closed', 'given up'))
          own?.close('closed: given up')
        },
      }
    }
    /** `openTries`: begun and not closed, as connections that a browser would still hold. */
    return { make, tries: () => tries, openTries: () => open }
  }

  return { maker }
}
