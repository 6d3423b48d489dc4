import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { lockFolder } from '../../sdk/hub/folder-lock.node.ts'
import { keepServingMarks } from '../../signaling/serving-marks.ts'
import { COMMIT } from '../support/hub-kit.ts'
import { exportedModel, openModelCli, type ModelCli } from '../support/model-cli.ts'
import { publishedModel } from '../support/published-model.ts'

let cli: ModelCli

beforeEach(async () => {
  cli = await openModelCli({
    'crowd/talk': await publishedModel(),
    'crowd/exports': await exportedModel(),
  })
})
afterEach(() => cli.close())

test('a download that stopped is listed and can be deleted, unless somebody still downloads', async () => {
  cli.hub.fault(({ server }) => server === 'storage', { kind: 'truncated' }, 4)
  await cli.crowdinfer('add', 'crowd/talk')
  expect((await cli.crowdinfer('list')).text).toMatch(
    /^crowd\/talk +– .* crowd\/talk@c0ffee00, an unfinished download/m,
  )
  const directory = join(cli.data, 'downloads', 'crowd--talk', COMMIT)
  const free = await lockFolder(directory)
  expect((await cli.crowdinfer('remove', 'crowd/talk', '--yes')).error).toMatch(
    /is downloading into/,
  )
  await free()
  expect((await cli.crowdinfer('remove', 'crowd/talk')).error).toMatch(/say --yes/)
  expect((await cli.crowdinfer('remove', 'crowd/talk', '--yes')).text).toMatch(
    /Removed crowd\/talk/,
  )
  expect(await readdir(join(cli.data, 'downloads'))).toEqual([])
  expect((await cli.crowdinfer('remove', 'crowd/talk', '--yes')).error).toMatch(
    /no unfinished download/,
  )
})

test('of a model that cannot be cut nothing is kept, of one that may be with other options the download', async () => {
  const broken = await cli.crowdinfer('add', 'crowd/exports', '--dtype', 'q8')
  expect(broken.error).not.toBe('')
  expect(broken.text).toMatch(/the download was deleted/)
  expect(await readdir(join(cli.data, 'downloads'))).toEqual([])
  expect(await readdir(join(cli.data, 'models')).catch(() => [])).toEqual([])

  const long = await cli.crowdinfer('add', 'crowd/exports', '--dtype', 'fp32', '--context', '4096')
  expect(long.error).toMatch(/from 1 to 64/)
  expect(long.text).toMatch(/the download is kept in .*crowdinfer model remove crowd\/exports/)
  expect((await cli.listed()).at(-1)).toMatchObject({ name: 'crowd/exports', kind: 'download' })
  cli.hub.requests.length = 0
  expect((await cli.crowdinfer('add', 'crowd/exports', '--dtype', 'fp32')).error).toBe('')
  expect(cli.hub.requests.some(({ server }) => server === 'storage')).toBe(false)
})

test('a kept download outlives what else is made of it', async () => {
  await cli.crowdinfer('add', 'crowd/talk', '--keep-source')
  await cli.crowdinfer('add', 'crowd/talk', '--dtype', 'q4')
  expect(await readdir(join(cli.data, 'downloads', 'crowd--talk', COMMIT))).toContain('config.json')
  expect((await cli.listed()).map(({ name }) => name).slice(-2)).toEqual(['talk', 'talk-q4'])
})

test('a model that a running host serves is not removed', async () => {
  await cli.crowdinfer('add', 'crowd/talk')
  const marks = await keepServingMarks(() => [join(cli.data, 'models', 'talk')])
  expect((await cli.crowdinfer('remove', 'talk', '--yes')).error).toMatch(
    /a running host serves talk/,
  )
  expect(await cli.answer('talk')).not.toBe('')
  await marks.close()
  expect((await cli.crowdinfer('remove', 'talk', '--yes')).error).toBe('')
})
