import type { BrowserOrtOptions } from '../ort.browser.ts'
import type { StageRunner } from '../stage-runner.ts'
import type { ThreadReply } from './messages.ts'
import { createThreadStageRunner, type Thread } from './proxy.ts'

/**
 * The StageRunner port of a page: ONNX Runtime in a Web Worker of its own.
 *
 *     const runner = createWorkerStageRunner({ prefer: 'auto' })
 *     const { provider } = await runner.start()
 */
export function createWorkerStageRunner(options: BrowserOrtOptions): StageRunner {
  return createThreadStageRunner({ spawn: spawnWorker }, options)
}

function spawnWorker(): Thread<BrowserOrtOptions> {
  const worker = new Worker(new URL('./host.browser.ts', import.meta.url), {
    type: 'module',
    name: 'crowdinfer-stage',
  })
  return {
    post(message, transfer) {
      worker.postMessage(message, transfer)
    },
    listen(listener) {
      // Only our own worker script holds the other end.
      worker.onmessage = ({ data }: MessageEvent<ThreadReply>) => {
        listener(data)
      }
    },
    onCrash(listener) {
      worker.onerror = ({ message }) => {
        listener(message === '' ? 'its script could not be loaded' : message)
      }
      worker.onmessageerror = () => {
        listener('a message could not be read')
      }
    },
    kill() {
      worker.terminate()
    },
  }
}
