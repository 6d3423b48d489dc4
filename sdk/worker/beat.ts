import type { ClientMessage } from '../protocol/client-to-server.ts'
import type { Sessions, SessionsProgress } from './sessions.ts'

/**
 * Says once a second that this device is there and where it stands. A thread that computes can't answer: while
 * its last answer is awaited the beat says that it computes.
 */
export function createBeat(deps: {
  readonly sessions: Pick<Sessions, 'progress'>
  tell(message: ClientMessage): void
}): () => void {
  let awaited = false

  function say({ computing, sessions }: SessionsProgress): void {
    deps.tell({
      kind: 'beat',
      computing,
      sessions: sessions.slice(0, 64).map((one) => ({ ...one })),
    })
  }

  return () => {
    if (awaited) {
      say({ computing: true, sessions: [] })
      return
    }
    awaited = true
    void deps.sessions.progress().then((progress) => {
      awaited = false
      say(progress)
    })
  }
}
