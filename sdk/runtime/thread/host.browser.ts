/// The entry script of the compute thread: everything that touches ORT in a tab lives here.
import { browserCandidates, type BrowserOrtOptions } from '../ort.browser.ts'
import { createOrtQueue } from '../ort-queue.ts'
import { createOrtStageRunner } from '../ort-stage-runner.ts'
import { selfTest } from '../self-test.ts'
import type { ThreadReply, ThreadRequest } from './messages.ts'
import { serveStageRunner } from './serve.ts'

serveStageRunner(
  {
    post(message: ThreadReply, transfer) {
      postMessage(message, { transfer })
    },
    listen(listener) {
      // Only our own page holds the other end.
      onmessage = ({ data }: MessageEvent<ThreadRequest<BrowserOrtOptions>>) => {
        listener(data)
      }
    },
  },
  (options: BrowserOrtOptions) =>
    createOrtStageRunner({
      candidates: browserCandidates(options),
      queue: createOrtQueue(),
      selfTest,
    }),
)
