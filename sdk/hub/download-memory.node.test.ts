import { stat } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { COMMIT, testHub, withFolder } from '../../test/support/hub-kit.ts'
import { patternFile, startHubServer, type HubServer } from '../../test/support/hub-server.ts'
import { downloadFile } from './download-file.node.ts'
import { listHubFiles } from './hub-files.ts'

/** By hand: HUB_TEST_MB=4000 for a larger one. */
const FILE_BYTES = Number(process.env['HUB_TEST_MB'] ?? 150) * 1e6
/** What sockets, the fake hub and garbage not yet collected take, whatever the file's size. */
const HELD_MAX_BYTES = 80e6

/** Peaks while a file of FILE_BYTES is downloaded, over what was there before. */
async function peakWhile(
  hub: HubServer,
  target: string,
): Promise<{ rss: number; buffers: number }> {
  const options = testHub(hub)
  const signal = new AbortController().signal
  const listing = await listHubFiles(options, { repo: 'org/large', revision: null }, signal)
  const [file] = listing.files
  if (!file) throw new Error('no file')
  const before = process.memoryUsage()
  let rss = 0
  let buffers = 0
  const onBytes = (): void => {
    const now = process.memoryUsage()
    rss = Math.max(rss, now.rss - before.rss)
    buffers = Math.max(buffers, now.arrayBuffers - before.arrayBuffers)
  }
  await downloadFile(options, { listing, file, target, signal, onBytes })
  return { rss, buffers }
}

test.each(['ranges', 'one stream'])(
  'a large file does not pass through memory whole: %s',
  async (how) => {
    const hub = await startHubServer({
      'org/large': { commit: COMMIT, files: { 'model.safetensors': patternFile(FILE_BYTES) } },
    })
    try {
      if (how === 'one stream') {
        hub.fault(({ server }) => server === 'storage', { kind: 'no-range' }, Infinity)
      }
      await withFolder(async (folder) => {
        const target = join(folder, 'model.safetensors')
        const { rss, buffers } = await peakWhile(hub, target)
        expect((await stat(target)).size).toBe(FILE_BYTES)
        expect(buffers).toBeLessThan(HELD_MAX_BYTES)
        expect(rss).toBeLessThan(2 * HELD_MAX_BYTES)
      })
    } finally {
      await hub.close()
    }
  },
)
