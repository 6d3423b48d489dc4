import type { WorkerSnapshot } from '../../sdk/worker/worker-snapshot.ts'
import { describePath } from '../ui/path-text.ts'
import { describeHolding } from './phase-text.ts'

export type LoggedEvent = { readonly atMs: number; readonly text: string }

/** What a report needs; older ones are dropped. */
export const EVENTS_KEPT = 50

export function addEvents(
  log: readonly LoggedEvent[],
  texts: readonly string[],
  atMs: number,
): readonly LoggedEvent[] {
  if (texts.length === 0) return log
  return [...log, ...texts.map((text) => ({ atMs, text }))].slice(-EVENTS_KEPT)
}

/** What changed between two snapshots that is worth a line. Counters aren't. */
export function snapshotEvents(before: WorkerSnapshot | null, after: WorkerSnapshot): string[] {
  const events: string[] = []
  if (before?.phase !== after.phase) events.push(`phase ${after.phase}`)
  const holding = describeHolding(after)
  if (holding !== '' && (before === null || describeHolding(before) !== holding)) {
    events.push(`assigned ${holding}: ${after.reason}`)
  }
  events.push(...linkEvents(before?.links ?? [], after.links))
  if (after.error !== null && after.error !== before?.error) {
    events.push(`error ${after.error.code}: ${after.error.message}`)
  }
  return events
}

function linkEvents(before: WorkerSnapshot['links'], after: WorkerSnapshot['links']): string[] {
  return after.flatMap((link) => {
    const known = before.find(({ peer }) => peer === link.peer)
    if (known?.state === link.state && known.path === link.path) return []
    return [`link to ${link.peer} ${link.state}, path ${describePath(link.path)}`]
  })
}
