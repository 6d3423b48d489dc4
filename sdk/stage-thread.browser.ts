/// The entry script of the compute thread: in a tab, everything that touches ORT and the frames between stages lives here.
import { CrowdError, toCrowdError } from './core/errors.ts'
import type { LaneNews, LaneOrder } from './net/lane-messages.ts'
import { createLaneHost } from './net/lane-host.ts'
import { createSystemTimers } from './net/timers.ts'
import { portEnd } from './port-end.browser.ts'
import { browserCandidates, type BrowserOrtOptions } from './runtime/ort.browser.ts'
import { createOrtQueue } from './runtime/ort-queue.ts'
import { createOrtStageRunner } from './runtime/ort-stage-runner.ts'
import { selfTest } from './runtime/self-test.ts'
import type { StageOutput, StageRunner, StageStep } from './runtime/stage-runner.ts'
import type { ThreadReply, ThreadRequest } from './runtime/thread/messages.ts'
import { serveStageRunner } from './runtime/thread/serve.ts'
import { createSessionHost, type SessionHost } from './worker/session-host.ts'
import type { SessionCommand, SessionNews } from './worker/session-messages.ts'

let runner: StageRunner | null = null
let toRunner: (request: ThreadRequest<BrowserOrtOptions>) => void = () => undefined

serveStageRunner<BrowserOrtOptions>(
  {
    post(message: ThreadReply, transfer) {
      postMessage(message, { transfer })
    },
    listen(listener) {
      toRunner = listener
    },
  },
  (options) => {
    runner = createOrtStageRunner({
      candidates: browserCandidates(options),
      queue: createOrtQueue(),
      selfTest,
    })
    return runner
  },
)

// Only our own page holds the other end.
onmessage = ({ data, ports }: MessageEvent<ThreadRequest<BrowserOrtOptions>>) => {
  const [lanePort, sessionPort] = ports
  if (lanePort !== undefined && sessionPort !== undefined) hostSessions(lanePort, sessionPort)
  else toRunner(data)
}

function hostSessions(lanePort: MessagePort, sessionPort: MessagePort): void {
  const timers = createSystemTimers()
  const lanes = createLaneHost({
    end: portEnd<LaneNews, LaneOrder>(lanePort),
    now: timers.now,
    later: timers.after,
    onFrame: (peer, frame) => sessions.onFrame(peer, frame),
  })
  const sessions: SessionHost = createSessionHost({
    end: portEnd<SessionNews, SessionCommand>(sessionPort),
    runner: {
      run,
      release: (session) => current().release(session),
    },
    sendOnLane: lanes.send,
    now: timers.now,
    later: timers.after,
  })
}

function current(): StageRunner {
  if (runner === null) throw new CrowdError('stage-failed', 'the compute thread is not started')
  return runner
}

async function run(step: StageStep): Promise<StageOutput> {
  try {
    return await current().run(step)
  } catch (thrown) {
    // The runtime hangs in here, and nothing else can run beside it: an uncaught error has the page kill this thread.
    if (toCrowdError(thrown).code === 'timeout') {
      setTimeout(() => {
        throw thrown
      })
    }
    throw thrown
  }
}
