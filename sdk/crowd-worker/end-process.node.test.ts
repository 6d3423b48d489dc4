import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'
import { startChild } from '../../test/support/child.ts'

const script = fileURLToPath(new URL('../../test/support/busy-process.mjs', import.meta.url))

/** What the thread computes takes many minutes. */
const LIMIT_MS = 10_000

test.each(['SIGINT', 'SIGTERM', 'SIGKILL'] as const)(
  '%s ends a process whose thread is in native code, with all that it wrote',
  { timeout: 2 * LIMIT_MS },
  async (signal) => {
    const child = startChild([script, signal])
    const limit = setTimeout(() => child.process.kill('SIGQUIT'), LIMIT_MS)
    const ended = await child.exited
    clearTimeout(limit)
    expect(ended).toBe(process.platform === 'win32' ? 1 : signal)
    expect(child.output()).toContain('the last line')
  },
)
