import type { MessageEnd } from './core/message-end.ts'

/** One end of a MessageChannel between the page and its compute thread. */
export function portEnd<Out, In>(port: MessagePort): MessageEnd<Out, In> {
  return {
    post(message, transfer = []) {
      // A caller names only what can be transferred.
      port.postMessage(message, [...transfer] as Transferable[])
    },
    listen(listener) {
      // Our own code holds the other end.
      port.onmessage = ({ data }: MessageEvent<In>) => listener(data)
    },
  }
}
