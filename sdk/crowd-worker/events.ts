import type { CrowdError } from '../core/errors.ts'
import { describeRange, sameRange, type BlockRange } from '../core/model/block-range.ts'
import { formatBytes } from '../terminal/format.ts'
import type { WorkerSnapshot } from '../worker/worker-snapshot.ts'

/** What a worker tells whoever runs it: a line each, for people or as JSON. */
export type WorkerEvent =
  | {
      readonly event: 'provider'
      readonly provider: string
      readonly threads: number
      readonly notes: readonly string[]
    }
  | { readonly event: 'note'; readonly text: string }
  | {
      readonly event: 'joined'
      readonly host: string
      readonly name: string
      readonly model: string
    }
  | { readonly event: 'host-lost'; readonly reason: string }
  | { readonly event: 'waiting'; readonly reason: string }
  | {
      readonly event: 'fetching'
      readonly blocks: readonly [number, number]
      readonly layers: string
    }
  /** Of layers to hold, or to keep stored as a spare. */
  | { readonly event: 'progress'; readonly doneBytes: number; readonly totalBytes: number }
  | {
      readonly event: 'serving'
      readonly blocks: readonly [number, number]
      readonly layers: string
      readonly totalBytes: number
      readonly fetchedBytes: number
      /** Those of them that came from peers. */
      readonly peerBytes: number
    }
  | { readonly event: 'link'; readonly peer: string; readonly path: string }
  | { readonly event: 'draining'; readonly sessions: number }
  | { readonly event: 'left' }
  | { readonly event: 'retrying'; readonly pauseMs: number }
  | {
      readonly event: 'error'
      readonly code: string
      readonly message: string
      readonly hint: string
    }

export function errorEvent(error: CrowdError): WorkerEvent {
  const { code, message, hint } = error
  return { event: 'error', code, message, hint }
}

/** What is worth a line between two snapshots of one worker; `before` is null at the first. */
export function eventsBetween(before: WorkerSnapshot | null, now: WorkerSnapshot): WorkerEvent[] {
  const events: WorkerEvent[] = []
  if (now.runner !== null && now.runner !== before?.runner)
    events.push({ event: 'provider', ...now.runner })
  if (before?.phase !== now.phase || !sameRange(before.range, now.range))
    events.push(...stageEvents(now))
  return [
    ...events,
    ...progressEvents(before, now),
    ...errorEvents(before?.error ?? null, now),
    ...linkEvents(before?.links ?? [], now.links),
  ]
}

/** One for each percent, so that a log stays readable; none for what was stored already. */
function progressEvents(before: WorkerSnapshot | null, now: WorkerSnapshot): WorkerEvent[] {
  if (before === null || (!isUnderWay(before) && !isUnderWay(now))) return []
  if (now.doneBytes <= before.doneBytes || percentOf(now) === percentOf(before)) return []
  return [{ event: 'progress', doneBytes: now.doneBytes, totalBytes: now.totalBytes }]
}

function isUnderWay({ doneBytes, totalBytes }: WorkerSnapshot): boolean {
  return doneBytes > 0 && doneBytes < totalBytes
}

function percentOf({ doneBytes, totalBytes }: WorkerSnapshot): number {
  return Math.floor((100 * doneBytes) / totalBytes)
}

/** The error that ends the worker is told by whoever ends it. */
function errorEvents(before: CrowdError | null, { error, phase }: WorkerSnapshot): WorkerEvent[] {
  return error === null || error === before || phase === 'failed' ? [] : [errorEvent(error)]
}

type LinkViews = WorkerSnapshot['links']

/** Links that are open now and were not, or go another way. */
function linkEvents(before: LinkViews, now: LinkViews): WorkerEvent[] {
  const known = new Set(openLinks(before).map(({ key }) => key))
  return openLinks(now)
    .filter(({ key }) => !known.has(key))
    .map(({ peer, path }) => ({ event: 'link', peer, path }))
}

function openLinks(links: LinkViews): { key: string; peer: string; path: string }[] {
  return links.flatMap(({ peer, path, state }) =>
    state === 'open' && path !== null ? [{ key: `${peer} ${path}`, peer, path }] : [],
  )
}

function stageEvents(now: WorkerSnapshot): WorkerEvent[] {
  const { phase, range, reason, totalBytes, fetchedBytes, peerBytes } = now
  if (phase === 'waiting') return [{ event: 'waiting', reason }]
  if (range === null) return []
  const stage = { blocks: [range.start, range.end] as const, layers: layersOf(range, now) }
  if (phase === 'fetching') return [{ event: 'fetching', ...stage }]
  if (phase === 'serving')
    return [{ event: 'serving', ...stage, totalBytes, fetchedBytes, peerBytes }]
  return []
}

function layersOf(range: BlockRange, { layerCount }: WorkerSnapshot): string {
  return describeRange(range, layerCount ?? range.end)
}

/** One event as people read it. */
export function textOf(event: WorkerEvent): string {
  switch (event.event) {
    case 'provider':
      return providerText(event)
    case 'note':
      return event.text
    case 'joined':
      return `joined ${event.host} as "${event.name}"; model ${event.model}`
    case 'host-lost':
      return `${event.reason}; trying again`
    case 'waiting':
      return `nothing to hold yet${event.reason === '' ? '' : `: ${event.reason}`}`
    case 'fetching':
      return `preparing ${event.layers}`
    case 'progress':
      return `${formatBytes(event.doneBytes)} of ${formatBytes(event.totalBytes)}`
    case 'serving':
      return `serving ${event.layers}: ${formatBytes(event.totalBytes)}, ${formatBytes(event.fetchedBytes)} of them fetched now${event.peerBytes === 0 ? '' : `, ${formatBytes(event.peerBytes)} from peers`}`
    case 'link':
      return `linked to ${event.peer}: ${event.path}`
    case 'draining':
      return event.sessions === 0
        ? 'leaving'
        : `leaving: handing over ${event.sessions} running ${event.sessions === 1 ? 'answer' : 'answers'}, or letting them end; Ctrl-C again leaves at once`
    case 'left':
      return 'left; the pieces stay for the next time'
    case 'retrying':
      return `joining again in ${Math.round(event.pauseMs / 1_000)} s`
    case 'error':
      return `${event.code}: ${event.message}\n  ${event.hint}`
  }
}

function providerText({
  provider,
  threads,
  notes,
}: Extract<WorkerEvent, { event: 'provider' }>): string {
  const on = provider === 'cpu' ? ` (${threads} ${threads === 1 ? 'thread' : 'threads'})` : ''
  const lines = [`provider: ${provider}${on}, self-test passed`]
  return [
    ...lines,
    ...notes.map((note) => `  passed over ${note.trim().replaceAll('\n', ' ')}`),
  ].join('\n')
}
