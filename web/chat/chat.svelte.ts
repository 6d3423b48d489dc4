import { CrowdError, toCrowdError } from '../../sdk/core/errors.ts'
import type { Client, GenerateRequest } from '../../sdk/client/client-types.ts'
import type { SwarmConnection } from '../../sdk/index.browser.ts'
import { createSwarmView, type SwarmView } from '../ui/swarm-view.svelte.ts'
import { whyBlocked, type TokenizerState } from './readiness.ts'
import { applyEvent, failTurn, isRunning, startTurn, toMessages, type Turn } from './turn.ts'

type ChatDeps = {
  readonly connection: SwarmConnection
  /** Milliseconds of a clock that never goes back. */
  readonly now: () => number
}

type RequestOptions = Pick<GenerateRequest, 'maxTokens' | 'sampling'>

/** The chat page's state: one conversation over one connection. */
export interface Chat {
  readonly view: SwarmView
  readonly turns: readonly Turn[]
  /** That the host serves; empty before it is known. */
  readonly model: string
  readonly running: boolean
  /** Why nothing can be sent; empty when it can. */
  readonly blocked: string
  readonly loadError: CrowdError | null
  /** Sends a question with everything said before. False: not sent, see `blocked`. */
  ask(question: string, options: RequestOptions): boolean
  /** Asks the last question again. */
  retry(options: RequestOptions): boolean
  stop(): void
  /** Forgets the conversation. */
  clear(): void
  reloadClient(): void
  close(): void
}

export function createChat({ connection, now }: ChatDeps): Chat {
  const view = createSwarmView(connection)
  let turns = $state.raw<readonly Turn[]>([])
  let tokenizer = $state<TokenizerState>('loading')
  let loadError = $state.raw<CrowdError | null>(null)
  let client: Client | null = null
  let abort: AbortController | null = null
  let model = $state('')
  let loads = 0
  let nextId = 1

  const running = $derived(isRunning(turns.at(-1)))
  /** What is known of the ring may be of the former model still. */
  const swarm = $derived(view.swarm?.model.id === model ? view.swarm : null)
  const blocked = $derived(whyBlocked(view.state, swarm, tokenizer))

  async function loadClient(): Promise<void> {
    const load = ++loads
    tokenizer = 'loading'
    loadError = null
    try {
      const loaded = await connection.createClient()
      if (load !== loads) return
      client = loaded
      tokenizer = 'ready'
    } catch (thrown) {
      if (load !== loads) return
      loadError = toCrowdError(thrown)
      tokenizer = 'failed'
    }
  }

  /** Turns of a conversation that was cleared meanwhile are gone, and so is the update. */
  function update(id: number, change: (turn: Turn) => Turn): void {
    turns = turns.map((turn) => (turn.id === id ? change(turn) : turn))
  }

  async function run(id: number, request: GenerateRequest, signal: AbortSignal): Promise<void> {
    try {
      if (client === null) throw new CrowdError('internal', 'the tokenizer is not loaded')
      for await (const event of client.generate(request, signal)) {
        update(id, (turn) => applyEvent(turn, event, now()))
      }
      const cut = new CrowdError('internal', 'the answer stopped without an end')
      update(id, (turn) => (isRunning(turn) ? failTurn(turn, cut) : turn))
    } catch (thrown) {
      const error = signal.aborted ? new CrowdError('aborted', 'stopped') : toCrowdError(thrown)
      update(id, (turn) => failTurn(turn, error))
    }
  }

  function ask(question: string, options: RequestOptions): boolean {
    if (question.trim() === '' || swarm === null || blocked !== '' || running) return false
    const id = nextId++
    const messages = toMessages(turns, question)
    turns = [...turns, startTurn(id, { question, model: swarm.model }, now())]
    abort = new AbortController()
    void run(id, { messages, ...options }, abort.signal)
    return true
  }

  function stop(): void {
    abort?.abort()
  }

  // Another model's tokens are other ones. The conversation is text, and goes on.
  const stopFollowing = connection.onModel((served) => {
    model = served.model
    void loadClient()
  })

  return {
    view,
    get turns() {
      return turns
    },
    get running() {
      return running
    },
    get blocked() {
      return blocked
    },
    get model() {
      return model
    },
    get loadError() {
      return loadError
    },
    ask,
    retry(options) {
      const last = turns.at(-1)
      if (last === undefined || blocked !== '' || running) return false
      turns = turns.slice(0, -1)
      return ask(last.question, options)
    },
    stop,
    clear() {
      stop()
      turns = []
    },
    reloadClient: () => void loadClient(),
    close() {
      stop()
      stopFollowing()
      view.close()
      client?.close()
      connection.close()
    },
  }
}
