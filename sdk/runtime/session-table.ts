import { CrowdError } from '../core/errors.ts'
import type { SessionId } from '../core/ids.ts'
import { SESSIONS_PER_STAGE } from '../core/limits.ts'
import type { KvCache } from './kv-cache.ts'

export type StageSession = {
  /** Rows that are valid in every cache. */
  length: number
  /** By block number. */
  readonly caches: Map<number, KvCache>
}

/** The sessions of a stage and their caches, bounded in number. */
export type SessionTable = {
  /**
   * The session, cut to `position`.
   * @throws CrowdError stage-failed beyond what is cached, too-many-requests when all places are taken
   */
  at(id: SessionId, position: number): StageSession
  release(id: SessionId): void
  clear(): void
}

export function createSessionTable(limit = SESSIONS_PER_STAGE): SessionTable {
  const sessions = new Map<SessionId, StageSession>()

  function release(id: SessionId): void {
    for (const cache of sessions.get(id)?.caches.values() ?? []) cache.dispose()
    sessions.delete(id)
  }

  function open(id: SessionId): StageSession {
    if (sessions.size >= limit) {
      throw new CrowdError('too-many-requests', `this stage keeps ${limit} sessions at most`)
    }
    const session = { length: 0, caches: new Map<number, KvCache>() }
    sessions.set(id, session)
    return session
  }

  return {
    at(id, position) {
      const cached = sessions.get(id)?.length ?? 0
      if (position > cached) {
        throw new CrowdError(
          'stage-failed',
          `session ${id}: position ${position} is beyond the ${cached} cached`,
        )
      }
      const session = sessions.get(id) ?? open(id)
      session.length = position
      return session
    },
    release,
    clear() {
      for (const id of [...sessions.keys()]) release(id)
    },
  }
}
