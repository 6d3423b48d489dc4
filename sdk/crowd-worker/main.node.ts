/// bin `crowd-worker`.
import { readFileSync } from 'node:fs'
import { hostname, totalmem } from 'node:os'
import { join } from 'node:path'
import process from 'node:process'
import { toCrowdError } from '../core/errors.ts'
import { dataDirectory } from '../import/data-directory.node.ts'
import { packageRoot } from '../import/package-root.node.ts'
import { openNodeDevice } from '../node-worker.node.ts'
import { checkHost } from './check-host.ts'
import { readCommandLine } from './command-line.ts'
import { parseWorkerConfig, wantsJson, type WorkerConfig } from './config.ts'
import { endBySignal } from './end-process.node.ts'
import { errorEvent, type WorkerEvent } from './events.ts'
import { exitCodeOf } from './exit-code.ts'
import { createPrinter } from './print-events.ts'
import { startWorkerRun } from './run-worker.ts'

/** Goodbyes are on their way this long before the process ends. */
const GOODBYE_MS = 150
const SIGNALS = [
  { signal: 'SIGINT', exitCode: 130 },
  { signal: 'SIGTERM', exitCode: 143 },
] as const

async function main(): Promise<void> {
  const line = readCommandLine(process.argv.slice(2), {
    version: packageVersion(),
    write: (text) => void process.stdout.write(text),
  })
  if (line.kind === 'done') return
  const config = parseWorkerConfig(line, process.env, {
    hostname: hostname(),
    memoryBytes: machineMemory(),
    dataDirectory,
  })
  await work(config, printer(config))
}

async function work(config: WorkerConfig, emit: (event: WorkerEvent) => void): Promise<never> {
  const notes: WorkerEvent[] = []
  let isFirst = true
  /** The provider comes first, whatever was noticed before it. */
  const inOrder = (event: WorkerEvent): void => {
    if (isFirst && event.event === 'note') {
      notes.push(event)
      return
    }
    isFirst = false
    emit(event)
    for (const note of notes.splice(0)) emit(note)
  }
  const device = await openNodeDevice({
    dataDir: config.dataDir,
    log: (text) => inOrder({ event: 'note', text }),
  })
  const run = startWorkerRun({
    config,
    device,
    emit: inOrder,
    checkHost,
    later(ms, task) {
      const timer = setTimeout(task, ms)
      return () => clearTimeout(timer)
    },
  })
  const signalled = listenToSignals(() => run.drain())
  const exitCode = await run.done
  await new Promise((resolve) => setTimeout(resolve, GOODBYE_MS))
  const { threadsEnded } = await device.close()
  // Whatever a native library still keeps alive must not keep the process.
  if (threadsEnded) process.exit(exitCode)
  return await endBySignal(signalled() ?? 'SIGKILL', exitCode)
}

/**
 * The first signal drains; the second ends at once.
 * @returns which signal came last
 */
function listenToSignals(drain: () => void): () => NodeJS.Signals | null {
  let last: NodeJS.Signals | null = null
  for (const { signal, exitCode } of SIGNALS)
    process.on(signal, () => {
      if (last === null) drain()
      else void endBySignal(signal, exitCode)
      last = signal
    })
  return () => last
}

function printer(options: { readonly json: boolean }): (event: WorkerEvent) => void {
  return createPrinter(options, process, () => Date.now())
}

/** A container's limit where there is one. */
function machineMemory(): number {
  const limit = process.constrainedMemory()
  return limit > 0 ? Math.min(limit, totalmem()) : totalmem()
}

function packageVersion(): string {
  const parsed: unknown = JSON.parse(readFileSync(join(packageRoot(), 'package.json'), 'utf8'))
  const isPackage = typeof parsed === 'object' && parsed !== null && 'version' in parsed
  return isPackage && typeof parsed.version === 'string' ? parsed.version : '0'
}

try {
  await main()
} catch (thrown) {
  const error = toCrowdError(thrown, 'internal')
  const json = wantsJson(process.argv.slice(2), process.env)
  if (json) printer({ json })(errorEvent(error))
  else process.stderr.write(`crowd-worker: ${error.message}\n  ${error.hint}\n`)
  process.exit(exitCodeOf(error.code))
}
