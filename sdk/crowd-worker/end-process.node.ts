import process from 'node:process'

/** What was written gets this long to leave the process. */
const FLUSH_MS = 200

/**
 * Ends this process by a signal. `process.exit` waits for the threads, and one that is in native code, at a GPU that
 * hangs for instance, is waited for without end; the system's own way out waits for nobody.
 * @param exitCode only where no signal ends the process: the first one of a container
 */
export async function endBySignal(signal: NodeJS.Signals, exitCode: number): Promise<never> {
  await Promise.race([
    Promise.all([flushed(process.stdout), flushed(process.stderr)]),
    new Promise((resolve) => setTimeout(resolve, FLUSH_MS)),
  ])
  // Without a listener the signal does what it does by default. Windows ends the process in any case.
  process.removeAllListeners(signal)
  process.kill(process.pid, signal)
  process.kill(process.pid, 'SIGKILL')
  process.exit(exitCode)
}

function flushed(stream: NodeJS.WriteStream): Promise<void> {
  return new Promise((resolve) => {
    stream.write('', () => resolve())
  })
}
