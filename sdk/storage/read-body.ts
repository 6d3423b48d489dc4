/**
 * The bytes of an answer as they come. Leaving the loop, or the signal, gives the connection up.
 * @throws what ended the connection, or the signal's reason
 */
export async function* readBody(
  body: ReadableStream<Uint8Array> | null,
  signal: AbortSignal,
): AsyncGenerator<Uint8Array> {
  const reader = body?.getReader()
  // fetch itself sometimes leaves a read waiting for ever when it is aborted between two reads.
  const stop = (): void => void reader?.cancel().catch(() => undefined)
  signal.addEventListener('abort', stop)
  try {
    while (reader !== undefined) {
      signal.throwIfAborted()
      const { done, value } = await reader.read()
      signal.throwIfAborted()
      if (done) return
      yield value
    }
  } finally {
    signal.removeEventListener('abort', stop)
    stop()
  }
}
