import { expect, test } from 'vitest'
import { COMMIT, testHub } from '../../test/support/hub-kit.ts'
import { fakeFile, startHubServer } from '../../test/support/hub-server.ts'
import { listHubFiles } from './hub-files.ts'
import { createHubRanges } from './read-hub-range.ts'

test('a range of a file is read, whatever passes by itself, and nothing else of it', async () => {
  const content = Uint8Array.from({ length: 200_000 }, (_, i) => (i * 7) % 251)
  const repo = { commit: COMMIT, files: { 'm.gguf': fakeFile(content, true) } }
  const hub = await startHubServer({ 'org/name': repo })
  try {
    const options = testHub(hub)
    const { signal } = new AbortController()
    const listing = await listHubFiles(options, { repo: 'org/name', revision: null }, signal)
    const [file] = listing.files
    if (file === undefined) throw new Error('no file')
    const read = createHubRanges(options, { listing, file, signal })
    const want = (from: number, length: number): Buffer =>
      Buffer.from(content.subarray(from, from + length))
    expect(Buffer.from(await read(0, 1_000)).equals(want(0, 1_000))).toBe(true)
    expect(hub.requests.at(-1)).toMatchObject({ server: 'storage', range: 'bytes=0-999' })

    hub.fault(({ server }) => server === 'storage', { kind: 'no-range' })
    expect(Buffer.from(await read(150_000, 20_000)).equals(want(150_000, 20_000))).toBe(true)
    hub.fault(({ server }) => server === 'storage', { kind: 'truncated' })
    expect(Buffer.from(await read(50_000, 90_000)).equals(want(50_000, 90_000))).toBe(true)
    hub.fault(({ server }) => server === 'storage', { kind: 'truncated' }, 100)
    await expect(read(0, 90_000)).rejects.toMatchObject({ code: 'hub-unavailable' })
  } finally {
    await hub.close()
  }
})
