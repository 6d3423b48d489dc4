import { readdir, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { WorkerEvent } from '../../sdk/crowd-worker/events.ts'
import { startChild, type Child } from './child.ts'
import { eventually } from './chromium.ts'

const SCRIPT = fileURLToPath(new URL('../../dist/sdk/crowd-worker/main.node.js', import.meta.url))

export type WorkerProcessOptions = {
  readonly joinUrl: string
  readonly name: string
  readonly dataDir: string
  readonly flags?: readonly string[]
  readonly environment?: Readonly<Record<string, string>>
  /** A command that runs what stands behind it. */
  readonly launcher?: readonly string[]
}

/** A real crowd-worker of the built package, on one CPU thread. */
export type WorkerProcess = Child & {
  readonly name: string
  readonly dataDir: string
  events(): WorkerEvent[]
  /** Waits for the n-th event of a kind. */
  event<Kind extends WorkerEvent['event']>(
    kind: Kind,
    count?: number,
  ): Promise<Extract<WorkerEvent, { event: Kind }>>
  /** Bytes of the pieces in its data folder. */
  storedBytes(): Promise<number>
}

const EVENT_MS = 40_000

export function startWorkerProcess(options: WorkerProcessOptions): WorkerProcess {
  const { joinUrl, name, dataDir, flags = [], environment = {}, launcher = [] } = options
  const own = ['--name', name, '--data', dataDir, '--memory', '256MB', '--json']
  const cpu = flags.includes('--provider') ? [] : ['--provider', 'cpu', '--threads', '1']
  const child = startChild([SCRIPT, joinUrl, ...own, ...cpu, ...flags], environment, launcher)

  // Our own program wrote the lines.
  const events = (): WorkerEvent[] => child.lines().map((line) => JSON.parse(line) as WorkerEvent)

  return {
    ...child,
    name,
    dataDir,
    events,
    event(kind, count = 1) {
      type Wanted = Extract<WorkerEvent, { event: typeof kind }>
      return eventually(`"${kind}" of ${name}: ${child.output()}`, EVENT_MS, () => {
        const found = events().filter((event): event is Wanted => event.event === kind)
        return found[count - 1] ?? null
      })
    },
    async storedBytes() {
      const folder = join(dataDir, 'shards')
      const pieces = (await readdir(folder)).filter((file) => /^[0-9a-f]{64}$/.test(file))
      const sizes = await Promise.all(
        pieces.map(async (file) => (await stat(join(folder, file))).size),
      )
      return sizes.reduce((sum, size) => sum + size, 0)
    },
  }
}
