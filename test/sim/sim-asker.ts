import { createClient } from '../../sdk/client/client.ts'
import type { Client } from '../../sdk/client/client-types.ts'
import { toCrowdError, type ErrorCode } from '../../sdk/core/errors.ts'
import type { PeerId, RequestId } from '../../sdk/core/ids.ts'
import type { Manifest } from '../../sdk/core/model/manifest.ts'
import type { FinishReason } from '../../sdk/core/session/request.ts'
import type { Timers } from '../../sdk/net/timers.ts'
import { createLetterTokenizer } from '../support/letter-tokenizer.ts'
import { createGate, type Gate } from './gate.ts'
import type { SimHost } from './sim-host.ts'
import { createSimSignaling, type SimSignaling } from './sim-signaling.ts'
import type { Question } from './unsplit.ts'

/** One question and what came of it so far. */
export type SimAnswer = {
  readonly question: Question
  readonly key: string
  readonly askedAt: number
  /** Ids as they came, and when. */
  readonly tokens: readonly number[]
  readonly tokenAt: readonly number[]
  /** null while it runs. */
  readonly end: AnswerEnd | null
  /** Whoever asked is gone: nobody waits for it. */
  readonly isUnread: boolean
  /** Settles at the end. */
  readonly done: Promise<void>
  /** Gives up. */
  cancel(): void
}

export type AnswerEnd = {
  readonly reason: FinishReason
  readonly code: ErrorCode | null
  readonly message: string
  readonly at: number
}

/** Somebody with the chat page: the real client. */
export type SimAsker = {
  readonly peer: PeerId
  readonly gate: Gate
  readonly signaling: SimSignaling
  readonly isConnected: boolean
  /** It closed its page, or its device is gone. */
  readonly isGone: boolean
  ask(question: Question): SimAnswer
  /** The connection breaks, which the host notices after so long; the page comes back by itself. */
  breakOff(hostMs?: number): void
  /** The device is gone without a word; the host notices after so long. */
  vanish(afterMs: number): void
  close(): void
}

export type SimAskerDeps = {
  readonly clock: Timers
  readonly host: SimHost
  readonly manifest: Manifest
  delayMs(): number
  readonly random: () => number
}

export function createSimAsker(deps: SimAskerDeps, name: string): SimAsker {
  // Names that the simulator chooses are ids without a parser.
  const peer = name as PeerId
  const { host, manifest, delayMs, random } = deps
  const gate = createGate(deps.clock)
  const signaling = createSimSignaling({
    gate,
    host,
    entry: { peer, name, role: 'asker' },
    delayMs,
    random,
  })
  let isConnected = false
  let isClosed = false
  let asked = 0
  /** Of the newest question; more than one where the host was lost in the middle. */
  let requests = 0
  signaling.onState(({ kind }) => {
    isConnected = kind === 'open'
  })
  const client = createClient({
    signaling,
    tokenizer: createLetterTokenizer(),
    model: manifest.id,
    revision: manifest.revision,
    contextLength: manifest.contextLength,
    newRequestId() {
      requests += 1
      return (requests === 1 ? `r${asked}` : `r${asked}.${requests}`) as RequestId
    },
    later: (ms, task) => gate.after(ms, task),
  })
  signaling.connect()

  return {
    peer,
    gate,
    signaling,
    get isConnected() {
      return isConnected
    },
    get isGone() {
      return isClosed || gate.isDead
    },
    ask(question) {
      asked += 1
      requests = 0
      return follow(client, question, { key: `${name}/r${asked}`, gate })
    },
    breakOff: (hostMs) => signaling.drop('transport close', hostMs),
    vanish(afterMs) {
      signaling.abandon(afterMs)
      gate.kill()
    },
    close() {
      isClosed = true
      client.close()
      signaling.close()
    },
  }
}

function follow(
  client: Client,
  question: Question,
  { key, gate }: { readonly key: string; readonly gate: Gate },
): SimAnswer {
  const { now } = gate
  const tokens: number[] = []
  const tokenAt: number[] = []
  const abort = new AbortController()
  let end: AnswerEnd | null = null

  async function read(): Promise<void> {
    const { prompt, maxTokens, sampling } = question
    const request = { promptIds: prompt, maxTokens, sampling }
    try {
      for await (const event of client.generate(request, abort.signal)) {
        // Without `chosen` it is text that was held back, and no token.
        if (event.kind === 'delta' && event.chosen !== undefined) {
          tokens.push(event.token)
          tokenAt.push(now())
        } else if (event.kind === 'end')
          end = { reason: event.reason, code: null, message: '', at: now() }
      }
    } catch (thrown) {
      const { code, message } = toCrowdError(thrown)
      end = { reason: 'error', code, message, at: now() }
    }
  }

  const done = read()
  return {
    done,
    question,
    key,
    askedAt: now(),
    tokens,
    tokenAt,
    get end() {
      return end
    },
    get isUnread() {
      return gate.isDead
    },
    cancel: () => abort.abort(),
  }
}
