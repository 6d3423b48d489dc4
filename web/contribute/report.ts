import type { CrowdError } from '../../sdk/core/errors.ts'
import { FEATURES, PROTOCOL } from '../../sdk/protocol/version.ts'
import type { WorkerSnapshot } from '../../sdk/worker/worker-snapshot.ts'
import type { Device } from './device.ts'
import type { LoggedEvent } from './event-log.ts'
import { describePath } from '../ui/path-text.ts'
import { describeHolding } from './phase-text.ts'

type ReportInput = {
  /** The page's own script, whose name changes with every build. */
  readonly build: string
  readonly device: Device
  readonly pledgeMb: number
  readonly snapshot: WorkerSnapshot | null
  readonly error: CrowdError | null
  readonly events: readonly LoggedEvent[]
}

/** A report for the person who helps. It never holds the pool's secret nor anybody's text: no worker sees text. */
export function buildReport(input: ReportInput): string {
  const { device, snapshot, error } = input
  return [
    'CrowdInfer report of a contributing tab',
    `build: ${input.build}`,
    `protocol: ${PROTOCOL} (${FEATURES.join(', ')})`,
    `browser: ${device.userAgent}`,
    `secure context: ${device.secureContext}, isolated: ${device.crossOriginIsolated}`,
    `WebGPU offered: ${device.webGpu}, cores: ${device.cores}, memory: ${device.memoryGb ?? '?'} GB`,
    `pledge: ${input.pledgeMb} MB`,
    ...(error === null ? [] : [`error: ${error.code}: ${error.message}`]),
    ...(snapshot === null ? ['worker: not started'] : workerLines(snapshot)),
    `last ${input.events.length} events:`,
    ...input.events.map(({ atMs, text }) => `  ${(atMs / 1_000).toFixed(1)} s  ${text}`),
  ].join('\n')
}

function workerLines(snapshot: WorkerSnapshot): string[] {
  const { runner, storage } = snapshot
  return [
    `phase: ${snapshot.phase}, peer: ${snapshot.peer ?? '?'}`,
    runner === null
      ? 'provider: none yet'
      : `provider: ${runner.provider}, threads: ${runner.threads}`,
    ...(runner?.notes ?? []).map((note) => `  note: ${note}`),
    `holds: ${describeHolding(snapshot) || 'nothing'}, because: ${snapshot.reason || '-'}`,
    `bytes: ${snapshot.doneBytes} of ${snapshot.totalBytes}, fetched ${snapshot.fetchedBytes}, of these from peers ${snapshot.peerBytes}`,
    storage === null
      ? 'storage: not known'
      : `storage: ${storage.usedBytes} used, ${storage.freeBytes ?? '?'} free, persistent: ${storage.persistent}`,
    `laps: ${snapshot.laps}, tokens: ${snapshot.tokens}, step: ${snapshot.stepMs ?? '?'} ms`,
    ...snapshot.links.map(
      (link) =>
        `link ${link.peer}: ${link.state}, ${describePath(link.path)}, round trip ${link.rttMs ?? '?'} ms`,
    ),
  ]
}
