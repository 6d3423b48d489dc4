import { utimes, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { withFolder } from '../../test/support/hub-kit.ts'
import { lockFolder } from './folder-lock.node.ts'

test('a folder is held by one process until it frees it', () =>
  withFolder(async (folder) => {
    const free = await lockFolder(folder)
    await expect(lockFolder(folder)).rejects.toThrow(/another crowdinfer/)
    await free()
    await free()
    await (
      await lockFolder(folder)
    )()
  }))

test('the lock of a killed process is taken over, at once or once it is old', () =>
  withFolder(async (folder) => {
    const path = join(folder, '.lock')
    // No process has this number.
    await writeFile(path, '999999999')
    await (
      await lockFolder(folder)
    )()
    await writeFile(path, String(process.pid))
    const old = new Date(Date.now() - 60_000)
    await utimes(path, old, old)
    await (
      await lockFolder(folder)
    )()
  }))
