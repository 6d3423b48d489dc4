import { spawn, type ChildProcess } from 'node:child_process'

/** A process of this repository that a test started. */
export type Child = {
  readonly process: ChildProcess
  /** Everything it wrote, both streams. */
  output(): string
  /** Lines of its standard output so far. */
  lines(): readonly string[]
  /** The exit code, or the signal that ended it. */
  readonly exited: Promise<number | NodeJS.Signals>
  /** SIGKILL, and waits for the end. */
  kill(): Promise<void>
}

/** Starts a script under this Node. @param launcher a command that runs what stands behind it */
export function startChild(
  args: readonly string[],
  environment: Readonly<Record<string, string>> = {},
  launcher: readonly string[] = [],
): Child {
  const env = { ...process.env, ...environment }
  // Set by our own code in this process, and to be set by it again in that one.
  if (!('ORT_DISABLE_TELEMETRY' in environment)) delete env['ORT_DISABLE_TELEMETRY']
  const [command = process.execPath, ...rest] = [...launcher, process.execPath, ...args]
  const child = spawn(command, rest, { stdio: ['ignore', 'pipe', 'pipe'], env })
  let out = ''
  let all = ''
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    out += text
    all += text
  })
  child.stderr.setEncoding('utf8').on('data', (text: string) => (all += text))
  const exited = new Promise<number | NodeJS.Signals>((resolve) => {
    // One of the two is there.
    child.on('close', (code, signal) => resolve(code ?? signal ?? 'SIGKILL'))
  })
  return {
    process: child,
    output: () => all,
    lines: () => out.split('\n').slice(0, -1),
    exited,
    async kill() {
      child.kill('SIGKILL')
      await exited
    },
  }
}
