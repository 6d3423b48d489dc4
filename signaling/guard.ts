/** Runs a task that nobody awaits; a fault in it is logged and goes no further. */
export type Guard = (what: string, task: () => void) => void

/** Timers and socket handlers have no caller: what they throw would end the process and every answer with it. */
export function createGuard(log: (line: string) => void): Guard {
  let logged = ''
  return (what, task) => {
    try {
      task()
    } catch (thrown) {
      const line = `fault in ${what}: ${describe(thrown)}`
      // A timer that fails fails again and again: one line is enough.
      if (line !== logged) log(line)
      logged = line
    }
  }
}

/** Message and place, on one line. */
function describe(thrown: unknown): string {
  if (!(thrown instanceof Error)) return String(thrown)
  const place = thrown.stack?.split('\n').find((line) => /^\s+at /.test(line)) ?? ''
  return `${thrown.message}${place.trim() === '' ? '' : ` (${place.trim()})`}`.replaceAll('\n', ' ')
}
