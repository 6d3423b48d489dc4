import { join } from 'node:path'
import { expect, test } from 'vitest'
import { withFolder } from '../../test/support/hub-kit.ts'
import { checkDiskSpace, freeDiskBytes } from './disk-space.node.ts'

const free = (bytes: number) => () => Promise.resolve(bytes)

test('too little room is told with every number, before anything is fetched', async () => {
  const needs = { 'the download': 3e9, 'its blocks': 1e9 }
  await expect(checkDiskSpace('/data', needs, free(4e9))).rejects.toMatchObject({
    code: 'storage-full',
    message: expect.stringMatching(
      /3\.0 GB for the download and 1\.0 GB for its blocks.*only 4\.0 GB are free/,
    ) as unknown,
  })
  await checkDiskSpace('/data', needs, free(4.3e9))
  await checkDiskSpace('/data', { nothing: 0 }, free(0))
})

test('a folder that is still to be made lies on the disk of its parent', () =>
  withFolder(async (folder) => {
    expect(await freeDiskBytes(join(folder, 'not', 'yet'))).toBeGreaterThan(0)
  }))
