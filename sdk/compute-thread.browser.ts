import type { MessageEnd } from './core/message-end.ts'
import { createDistantLanes, type DistantLanes } from './net/distant-lanes.ts'
import type { LaneNews, LaneOrder } from './net/lane-messages.ts'
import { createSystemTimers } from './net/timers.ts'
import { portEnd } from './port-end.browser.ts'
import type { BrowserOrtOptions } from './runtime/ort.browser.ts'
import type { StageRunner } from './runtime/stage-runner.ts'
import { threadOver } from './runtime/thread/proxy.browser.ts'
import { createThreadStageRunner, type Thread } from './runtime/thread/proxy.ts'
import { createDistantSessions, type DistantSessions } from './worker/distant-sessions.ts'
import type { SessionCommand, SessionNews } from './worker/session-messages.ts'
import type { MakeSessions } from './worker/sessions.ts'

/** A Web Worker that computes, runs the sessions, and has the frames between stages come to it directly. */
export type ComputeThread = {
  readonly runner: StageRunner
  readonly lanes: DistantLanes
  /** Once. */
  readonly makeSessions: MakeSessions
}

/** How often the thread is asked whether it still answers. */
const BEAT_MS = 5_000

/**
 * The compute thread of a page. It begins with `runner.start()`; one that hangs or crashes is killed, its sessions
 * fail and its links close, and the next start makes a new one.
 *
 *     const { runner } = createComputeThread({ prefer: 'auto' })
 *     const { provider } = await runner.start()
 */
export function createComputeThread(options: BrowserOrtOptions): ComputeThread {
  const timers = createSystemTimers()
  const lanes = createDistantLanes(timers)
  let sessions: DistantSessions | null = null
  let sessionEnd: MessageEnd<SessionCommand, SessionNews> | null = null
  let stopBeating: () => void = () => undefined

  function spawn(): Thread<BrowserOrtOptions> {
    const worker = new Worker(new URL('./stage-thread.browser.ts', import.meta.url), {
      type: 'module',
      name: 'crowdinfer-stage',
    })
    const [forLanes, forSessions] = [new MessageChannel(), new MessageChannel()]
    worker.postMessage(null, [forLanes.port2, forSessions.port2])
    lanes.attach(portEnd<LaneOrder, LaneNews>(forLanes.port1))
    sessionEnd = portEnd<SessionCommand, SessionNews>(forSessions.port1)
    sessions?.attach(sessionEnd)
    stopBeating = timers.after(BEAT_MS, beat)
    return threadOver(worker)
  }

  const runner = createThreadStageRunner(
    {
      spawn,
      onKilled(error) {
        stopBeating()
        lanes.lost(error)
        sessions?.lost(error)
      },
    },
    options,
  )

  /** Steps run in the thread, so that nothing here would wait for one that hangs. */
  function beat(): void {
    runner.beat()
    stopBeating = timers.after(BEAT_MS, beat)
  }

  return {
    lanes,
    runner: {
      ...runner,
      async close() {
        stopBeating()
        await runner.close()
      },
    },
    makeSessions(deps) {
      sessions = createDistantSessions(deps)
      if (sessionEnd !== null) sessions.attach(sessionEnd)
      return sessions
    },
  }
}
