import { CrowdError, fromWire } from '../../core/errors.ts'
import { STAGE_LOAD_MS, STAGE_STEP_MS } from '../../core/limits.ts'
import type { BlockBytes, StageRunner, StageStep } from '../stage-runner.ts'
import { transferable, type ThreadPort, type ThreadReply, type ThreadRequest } from './messages.ts'

/** A thread that can be killed at any moment. */
export type Thread<Options> = ThreadPort<ThreadRequest<Options>, ThreadReply> & {
  /** Called when the thread dies or can't be loaded. */
  onCrash(listener: (reason: string) => void): void
  kill(): void
}

export type ThreadRunnerDeps<Options> = {
  readonly spawn: () => Thread<Options>
  /** The thread was killed (hung, crashed); everything in it is gone until the next `start`. */
  readonly onKilled?: (error: CrowdError) => void
}

export type ThreadStageRunner = StageRunner & {
  /** Asks the thread for a sign of life; without one it is killed like a thread that hangs in a step. */
  beat(): void
}

/** The thread has limits of its own; this much later it is taken for hung. */
const GRACE_MS = 5_000
const CLOSE_MS = 5_000

type Body<Request> = Request extends unknown ? Omit<Request, 'id'> : never

type Pending = {
  readonly limitMs: number
  readonly what: string
  readonly resolve: (reply: ThreadReply) => void
  readonly reject: (error: CrowdError) => void
}

/**
 * The StageRunner port where nothing computes, in front of a compute thread. A thread that hangs or crashes is killed:
 * what was waiting fails, later calls fail with stage-failed, and a new `start` makes a fresh thread, for
 * which setStage wants all blocks again.
 */
export function createThreadStageRunner<Options>(
  deps: ThreadRunnerDeps<Options>,
  options: Options,
): ThreadStageRunner {
  const pending = new Map<number, Pending>()
  let thread: Thread<Options> | null = null
  let nextId = 0
  let watchdog: ReturnType<typeof setTimeout> | undefined
  let downReason = 'the compute thread is not started'
  let closed = false
  let onLost: (error: CrowdError) => void = () => undefined

  /** Progress is what counts: calls queue in the thread, so the oldest one's limit runs from the last reply. */
  function restartWatchdog(): void {
    clearTimeout(watchdog)
    const oldest = pending.values().next().value
    if (oldest === undefined) return
    const { limitMs, what } = oldest
    watchdog = setTimeout(() => {
      kill(new CrowdError('timeout', `${what} took longer than ${limitMs} ms`))
    }, limitMs + GRACE_MS)
  }

  function stopThread(error: CrowdError): void {
    thread?.kill()
    thread = null
    downReason = `the compute thread was stopped: ${error.message}`
    const waiting = [...pending.values()]
    pending.clear()
    restartWatchdog()
    for (const { reject } of waiting) reject(error)
  }

  function kill(error: CrowdError): void {
    if (thread === null) return
    stopThread(error)
    deps.onKilled?.(error)
    onLost(error)
  }

  function spawn(): Thread<Options> {
    const made = deps.spawn()
    made.listen(receive)
    made.onCrash((reason) => {
      if (thread === made)
        kill(new CrowdError('stage-failed', `the compute thread died: ${reason}`))
    })
    return made
  }

  function receive(reply: ThreadReply): void {
    const call = pending.get(reply.id)
    if (call === undefined) return
    pending.delete(reply.id)
    restartWatchdog()
    if (reply.kind !== 'failed') {
      call.resolve(reply)
      return
    }
    const error = fromWire(reply.error)
    call.reject(error)
    // The runtime hangs in there; nothing else can run beside it.
    if (error.code === 'timeout') kill(error)
  }

  async function call(
    body: Body<ThreadRequest<Options>>,
    what: string,
    rest: { readonly limitMs: number; readonly transfer?: ArrayBuffer[] },
  ): Promise<ThreadReply> {
    const current = thread
    if (current === null) throw new CrowdError('stage-failed', downReason)
    const id = nextId++
    const reply = new Promise<ThreadReply>((resolve, reject) => {
      pending.set(id, { limitMs: rest.limitMs, what, resolve, reject })
    })
    if (pending.size === 1) restartWatchdog()
    try {
      current.post({ ...body, id }, rest.transfer ?? [])
    } catch (thrown) {
      pending.delete(id)
      restartWatchdog()
      throw new CrowdError('internal', `${what} can't be sent: ${String(thrown)}`, {
        cause: thrown,
      })
    }
    return reply
  }

  return {
    async start() {
      if (closed) throw new CrowdError('stage-failed', 'the runner is closed')
      thread ??= spawn()
      const reply = await call({ kind: 'start', options }, 'starting', LOAD)
      return expectKind(reply, 'started').report
    },
    async setStage(manifest, range) {
      const reply = await call({ kind: 'set-stage', manifest, range }, 'setting the stage', LOAD)
      return expectKind(reply, 'stage-set').wanted
    },
    async loadBlock(block, bytes) {
      const sent = withBlockTransfer(bytes)
      const body = { kind: 'load-block', block, bytes: sent.bytes } as const
      await call(body, `loading block ${block}`, { ...LOAD, transfer: sent.transfer })
    },
    async run(step) {
      const sent = withStepTransfer(step)
      const body = { kind: 'run', step: sent.step } as const
      const reply = await call(body, 'a step', { ...STEP, transfer: sent.transfer })
      return expectKind(reply, 'ran').output
    },
    onLost(listener) {
      onLost = listener
    },
    beat() {
      // Whoever waits for a step or a load watches already, and a failure is told through onKilled.
      if (thread !== null && pending.size === 0) {
        call({ kind: 'beat' }, 'a sign of life', STEP).catch(() => undefined)
      }
    },
    async release(session) {
      if (thread !== null) await call({ kind: 'release', session }, 'releasing a session', STEP)
    },
    async close() {
      closed = true
      if (thread === null) return
      // Whatever becomes of a polite end, the thread is gone afterwards.
      const timer = setTimeout(() => {
        stopThread(new CrowdError('aborted', 'the runner was closed'))
      }, CLOSE_MS)
      try {
        await call({ kind: 'close' }, 'closing', STEP)
      } catch (thrown) {
        if (!(thrown instanceof CrowdError)) throw thrown
      } finally {
        clearTimeout(timer)
        stopThread(new CrowdError('aborted', 'the runner was closed'))
      }
    },
  }
}

const LOAD = { limitMs: STAGE_LOAD_MS }
const STEP = { limitMs: STAGE_STEP_MS }

function expectKind<Kind extends ThreadReply['kind']>(
  reply: ThreadReply,
  kind: Kind,
): Extract<ThreadReply, { kind: Kind }> {
  if (reply.kind !== kind) throw new CrowdError('internal', `reply ${reply.kind}, expected ${kind}`)
  // Checked in the line above; the compiler can't narrow by a generic.
  return reply as Extract<ThreadReply, { kind: Kind }>
}

function withBlockTransfer(bytes: BlockBytes): { bytes: BlockBytes; transfer: ArrayBuffer[] } {
  const data = transferable(bytes.data)
  const graph = bytes.graph === null ? null : transferable(bytes.graph)
  const transfer = graph === null ? [data.buffer] : [data.buffer, graph.buffer]
  return { bytes: { graph: graph?.view ?? null, data: data.view }, transfer }
}

function withStepTransfer(step: StageStep): { step: StageStep; transfer: ArrayBuffer[] } {
  if (step.input.kind === 'tokens') return { step, transfer: [] }
  const { view, buffer } = transferable(step.input.data)
  return { step: { ...step, input: { kind: 'hidden', data: view } }, transfer: [buffer] }
}
