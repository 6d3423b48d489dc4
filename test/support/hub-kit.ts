import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { HubOptions } from '../../sdk/hub/hub-options.ts'
import type { HubServer } from './hub-server.ts'

export const COMMIT = 'c0ffee'.padEnd(40, '0')

/** Waiting costs nothing; how long was to be waited is noted. */
export function testHub(
  hub: Pick<HubServer, 'url'>,
  change: Partial<HubOptions> = {},
): HubOptions & { readonly waits: number[]; readonly notices: string[] } {
  const waits: number[] = []
  const notices: string[] = []
  return {
    hubUrl: hub.url,
    token: null,
    fetch: (input, init) => fetch(input, init),
    timing: {
      random: () => 0,
      stallMs: 2_000,
      wait: (ms) => {
        waits.push(ms)
        return Promise.resolve()
      },
    },
    notice: (line) => void notices.push(line),
    ...change,
    waits,
    notices,
  }
}

export async function withFolder<T>(use: (folder: string) => Promise<T>): Promise<T> {
  const folder = await mkdtemp(join(tmpdir(), 'crowdinfer-hub-'))
  try {
    return await use(folder)
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}
