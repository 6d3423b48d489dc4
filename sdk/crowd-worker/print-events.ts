import {
  createProgressLine,
  type ProgressLine,
  type ProgressOutput,
} from '../terminal/progress-line.ts'
import { textOf, type WorkerEvent } from './events.ts'

/** Prints each event: as a line of JSON, or as people read it, with a bar for what is fetched. */
export function createPrinter(
  { json }: { readonly json: boolean },
  streams: { readonly stdout: ProgressOutput; readonly stderr: ProgressOutput },
  now: () => number,
): (event: WorkerEvent) => void {
  if (json)
    return (event) =>
      void streams.stdout.write(
        `${JSON.stringify({ time: new Date(now()).toISOString(), ...event })}\n`,
      )
  let bar: ProgressLine | null = null
  return (event) => {
    if (event.event === 'progress') {
      bar ??= createProgressLine('fetching', streams.stdout, now)
      bar.show({ done: event.doneBytes, total: event.totalBytes, unit: 'bytes' })
      return
    }
    if (event.event === 'fetching' || event.event === 'serving' || event.event === 'waiting') {
      bar?.close()
      bar = null
    }
    const text = textOf(event)
    if (event.event === 'error') {
      bar?.close()
      streams.stderr.write(`${text}\n`)
    } else if (bar !== null) bar.say(text)
    else streams.stdout.write(`${text}\n`)
  }
}
