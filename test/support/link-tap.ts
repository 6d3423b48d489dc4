import type { Lane, Link } from '../../sdk/net/channel.ts'

/** A link with a test's hands on it. */
export type LinkTap = {
  readonly link: Link
  /** What went out through this end, in order. */
  readonly sent: { readonly lane: Lane; readonly message: Uint8Array }[]
  /** Sends raw bytes as if the channel had written them. */
  inject(lane: Lane, message: Uint8Array): void
  /** From now on this end neither sends nor hears, and nobody is told. */
  cut(): void
}

export function tapLink(inner: Link): LinkTap {
  const sent: LinkTap['sent'] = []
  let isCut = false
  return {
    sent,
    link: {
      path: inner.path,
      send(lane, message) {
        if (isCut) return
        sent.push({ lane, message })
        inner.send(lane, message)
      },
      bufferedBytes: (lane) => inner.bufferedBytes(lane),
      onDrain: (handler) => inner.onDrain(handler),
      onMessage: (handler) =>
        inner.onMessage((lane, message) => {
          if (!isCut) handler(lane, message)
        }),
      onClose: (handler) => inner.onClose(handler),
      close: (reason) => inner.close(reason),
    },
    inject: (lane, message) => inner.send(lane, message),
    cut() {
      isCut = true
    },
  }
}
