import type { BrowserOrtOptions } from '../ort.browser.ts'
import type { ThreadReply } from './messages.ts'
import type { Thread } from './proxy.ts'

/** A Web Worker as a thread of the runner's proxy. */
export function threadOver(worker: Worker): Thread<BrowserOrtOptions> {
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
