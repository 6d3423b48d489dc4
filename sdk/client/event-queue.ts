/** Events pushed by a callback, pulled by an async loop. Fails or ends once; what was pushed before stays readable. */
export type EventQueue<Event> = {
  push(event: Event): void
  fail(error: Error): void
  /** The next event. @throws what fail() was given, once everything before it was read */
  next(): Promise<Event>
}

export function createEventQueue<Event>(): EventQueue<Event> {
  const events: Event[] = []
  let failure: Error | null = null
  let wake: (() => void) | null = null

  function notify(): void {
    wake?.()
    wake = null
  }

  return {
    push(event) {
      events.push(event)
      notify()
    },
    fail(error) {
      failure ??= error
      notify()
    },
    async next() {
      for (;;) {
        const event = events.shift()
        if (event !== undefined) return event
        if (failure !== null) throw failure
        await new Promise<void>((resolve) => {
          wake = resolve
        })
      }
    },
  }
}
