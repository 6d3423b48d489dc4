import { afterEach, describe, expect, test } from 'vitest'
import { CrowdError } from '../../sdk/core/errors.ts'
import type { PairId } from '../../sdk/core/ids.ts'
import type { Signaling, SignalingState } from '../../sdk/net/signaling.ts'
import type { ClientMessage } from '../../sdk/protocol/client-to-server.ts'
import type { ServerMessage } from '../../sdk/protocol/server-to-client.ts'

/** A Signaling that was not connected yet, and a test's hands on the host behind it. */
export type SignalingEnd = {
  readonly signaling: Signaling
  /** Messages that reached the host, hellos apart. */
  sent(): readonly ClientMessage[]
  /** Relayed bytes that reached the host. */
  relayed(): readonly Uint8Array[]
  /** Answers the hello; after a loss, lets the peer come back. */
  welcome(): void
  say(message: ServerMessage): void
  relay(pair: PairId, bytes: Uint8Array): void
  /** Breaks the connection. */
  lose(): void
  /** Refuses for good. */
  refuse(error: CrowdError): void
  close(): Promise<void>
}

// A name that a test chooses is an id without a parser.
const PAIR = 'pair-1' as PairId
const note = (reason: string): ServerMessage => ({ kind: 'pair-close', pair: PAIR, reason })
const signal = (data: string): ClientMessage => ({ kind: 'signal', pair: PAIR, attempt: 1, data })

/** What every Signaling does, the fakes included. */
export function describeSignalingContract(name: string, make: () => Promise<SignalingEnd>): void {
  describe(`${name} keeps the Signaling contract`, () => {
    const ends: SignalingEnd[] = []
    afterEach(async () => {
      for (const end of ends.splice(0)) {
        end.signaling.close()
        await end.close()
      }
    })

    async function connecting() {
      const end = await make()
      ends.push(end)
      const states: SignalingState[] = []
      const messages: ServerMessage[] = []
      const relayed: number[][] = []
      end.signaling.onState((state) => states.push(state))
      end.signaling.onMessage((message) => messages.push(message))
      end.signaling.relay.onMessage((_pair, bytes) => relayed.push([...bytes]))
      end.signaling.connect()
      return { ...end, states, messages, relayed, sentRelayed: end.relayed }
    }

    async function open() {
      const end = await connecting()
      end.welcome()
      await reaches(end.states, 'open')
      return end
    }

    test('SG1 tells its state at once, and each change: open comes with the welcome', async () => {
      const { signaling, states } = await open()
      expect(states[0]?.kind).toBe('connecting')
      expect(states.at(-1)).toMatchObject({ kind: 'open', welcome: { kind: 'welcome' } })
      const late: SignalingState[] = []
      signaling.onState((state) => late.push(state))
      expect(late).toEqual(states.slice(-1))
    })

    test('SG10 delivers nothing and sends nothing before the welcome', async () => {
      const end = await connecting()
      end.say(note('too early'))
      end.relay(PAIR, Uint8Array.of(1))
      expect(end.signaling.send(signal('too early'))).toBe(false)
      expect(end.signaling.relay.send(PAIR, Uint8Array.of(1))).toBe(false)
      end.welcome()
      await reaches(end.states, 'open')
      end.say(note('in time'))
      end.relay(PAIR, Uint8Array.of(2))
      await expect.poll(() => end.messages, POLL).toEqual([note('in time')])
      await expect.poll(() => end.relayed, POLL).toEqual([[2]])
      expect(end.sent()).toEqual([])
      expect(end.sentRelayed()).toEqual([])
    })

    test('SG1 carries messages and relayed bytes both ways, in order, while it is open', async () => {
      const end = await open()
      const second: ServerMessage[] = []
      end.signaling.onMessage((message) => second.push(message))
      for (const word of ['one', 'two']) {
        end.say(note(word))
        expect(end.signaling.send(signal(word))).toBe(true)
        expect(end.signaling.relay.send(PAIR, Uint8Array.of(word.length, 7))).toBe(true)
      }
      await expect.poll(() => end.messages, POLL).toEqual([note('one'), note('two')])
      expect(second).toEqual(end.messages)
      await expect.poll(() => end.sent(), POLL).toEqual([signal('one'), signal('two')])
      await expect.poll(() => end.sentRelayed().length, POLL).toBe(2)
      expect([...(end.sentRelayed()[1] ?? [])]).toEqual([3, 7])
    })

    test('SG5 sends and keeps nothing while the connection is lost', async () => {
      const end = await open()
      end.lose()
      await expect.poll(() => end.states.some(({ kind }) => kind === 'lost'), POLL).toBe(true)
      if (end.states.at(-1)?.kind === 'lost') {
        expect(end.signaling.send(signal('lost'))).toBe(false)
        expect(end.signaling.relay.send(PAIR, Uint8Array.of(9))).toBe(false)
      }
      end.welcome()
      await reaches(end.states, 'open')
      expect(end.signaling.send(signal('again'))).toBe(true)
      await expect.poll(() => end.sent(), POLL).toEqual([signal('again')])
      expect(end.sentRelayed()).toEqual([])
    })

    test('SG11 stays refused, with the reason', async () => {
      const end = await open()
      end.refuse(new CrowdError('wrong-secret', 'no'))
      await reaches(end.states, 'refused')
      expect(end.states.at(-1)).toMatchObject({ error: { code: 'wrong-secret', message: 'no' } })
      end.signaling.connect()
      expect(end.signaling.send(signal('after all'))).toBe(false)
      expect(end.states.at(-1)?.kind).toBe('refused')
    })

    test('SG5 closes once and for all', async () => {
      const end = await open()
      end.signaling.close()
      end.signaling.close()
      end.signaling.connect()
      end.say(note('too late'))
      expect(end.signaling.send(signal('too late'))).toBe(false)
      expect(end.signaling.relay.send(PAIR, Uint8Array.of(1))).toBe(false)
      expect(end.states.filter(({ kind }) => kind === 'closed')).toHaveLength(1)
      expect(end.states.at(-1)?.kind).toBe('closed')
      expect(end.messages).toEqual([])
    })
  })
}

const POLL = { timeout: 10_000, interval: 5 }

async function reaches(states: SignalingState[], kind: SignalingState['kind']): Promise<void> {
  await expect.poll(() => states.at(-1)?.kind, POLL).toBe(kind)
}
