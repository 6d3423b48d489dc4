/// bin `crowd-worker`.
import { readFileSync } from 'node:fs'
import { hostname, totalmem } from 'node:os'
import { join } from 'node:path'
import process from 'node:process'
import { CrowdError, toCrowdError } from '../core/errors.ts'
import { dataDirectory } from '../import/data-directory.node.ts'
import { packageRoot } from '../import/package-root.node.ts'
import { openNodeDevice } from '../node-worker.node.ts'
import { checkHost } from './check-host.ts'
import { readCommandLine } from './command-line.ts'
import { parseWorkerConfig, type WorkerConfig } from './config.ts'
import { errorEvent, textOf, type WorkerEvent } from './events.ts'
import { startWorkerRun } from './run-worker.ts'

/** Goodbyes are on their way this long before the process ends. */
const GOODBYE_MS = 150
const SIGNALS = { SIGINT: 130, SIGTERM: 143 } as const

/** @returns the exit code; null when only help or the version was asked for */
async function main(): Promise<number | null> {
  const line = readCommandLine(process.argv.slice(2), {
    version: packageVersion(),
    write: (text) => void process.stdout.write(text),
  })
  if (line.kind === 'done') return null
  const config = parseWorkerConfig(line, process.env, {
    hostname: hostname(),
    memoryBytes: machineMemory(),
    dataDirectory,
  })
  return await work(config, createPrinter(config))
}

async function work(config: WorkerConfig, emit: (event: WorkerEvent) => void): Promise<number> {
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
  listenToSignals(() => run.drain())
  const exitCode = await run.done
  await new Promise((resolve) => setTimeout(resolve, GOODBYE_MS))
  await device.close()
  return exitCode
}

/** The first signal drains; the second ends at once. */
function listenToSignals(drain: () => void): void {
  let count = 0
  for (const [signal, exitCode] of Object.entries(SIGNALS))
    process.on(signal, () => {
      count += 1
      if (count > 1) process.exit(exitCode)
      drain()
    })
}

function createPrinter({ json }: { readonly json: boolean }): (event: WorkerEvent) => void {
  return (event) => {
    const stream = event.event === 'error' && !json ? process.stderr : process.stdout
    const text = json ? JSON.stringify({ time: new Date().toISOString(), ...event }) : textOf(event)
    stream.write(`${text}\n`)
  }
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
  const exitCode = await main()
  // Whatever a native library still keeps alive must not keep the process.
  if (exitCode !== null) process.exit(exitCode)
} catch (thrown) {
  const error = toCrowdError(thrown, 'internal')
  const isUsage = error instanceof CrowdError && error.code === 'bad-option'
  const json = !isUsage && process.argv.includes('--json')
  if (json) createPrinter({ json })(errorEvent(error))
  else process.stderr.write(`crowd-worker: ${error.message}\n  ${error.hint}\n`)
  process.exit(1)
}
