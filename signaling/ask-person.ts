import { createInterface } from 'node:readline/promises'
import type { Readable, Writable } from 'node:stream'
import type { ProgressOutput } from '../sdk/terminal/progress-line.ts'

export type Terminal = {
  readonly output: Writable & ProgressOutput
  readonly input: Readable & { readonly isTTY?: boolean }
}

/** Asks a person yes or no; null where none sits there. */
export type Ask = (question: string) => Promise<boolean | null>

export function createAsker({ output, input }: Terminal): Ask {
  return async (question) => {
    if (input.isTTY !== true || output.isTTY !== true) return null
    const lines = createInterface({ input, output })
    try {
      const answer = await new Promise<string>((resolve) => {
        // Ctrl-C and Ctrl-D say no.
        lines.once('close', () => resolve('n'))
        lines.once('SIGINT', () => resolve('n'))
        lines.question(`${question} [y/N] `).then(resolve, () => resolve('n'))
      })
      return /^\s*y(es)?\s*$/i.test(answer)
    } finally {
      lines.close()
    }
  }
}
