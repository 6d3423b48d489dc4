/** One end of a connection between two threads. Both ends are our own code, so messages are trusted. */
export type MessageEnd<Out, In> = {
  /** `transfer` names what goes over instead of being copied. */
  post(message: Out, transfer?: readonly object[]): void
  /** Replaces the listener. */
  listen(listener: (message: In) => void): void
}
