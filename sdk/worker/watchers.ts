/** Whoever follows a worker: told of its state now and after every change. */
export type Watchers<Snapshot> = {
  onChange(handler: (snapshot: Snapshot) => void): () => void
  changed(): void
}

export function createWatchers<Snapshot>(take: () => Snapshot): Watchers<Snapshot> {
  const handlers = new Set<(snapshot: Snapshot) => void>()
  return {
    onChange(handler) {
      handlers.add(handler)
      handler(take())
      return () => handlers.delete(handler)
    },
    changed() {
      const now = take()
      for (const handler of handlers) handler(now)
    },
  }
}
