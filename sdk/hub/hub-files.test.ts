import { afterEach, beforeEach, expect, test } from 'vitest'
import { COMMIT, testHub } from '../../test/support/hub-kit.ts'
import {
  fakeFile,
  HUB_TOKEN,
  startHubServer,
  type HubFault,
  type HubServer,
} from '../../test/support/hub-server.ts'
import { listHubFiles } from './hub-files.ts'

const NAMES = ['a', 'b', 'c', 'd', 'e', 'f', 'g']
const files = Object.fromEntries(NAMES.map((name) => [`${name}.txt`, fakeFile(name)]))

let hub: HubServer

beforeEach(async () => {
  hub = await startHubServer({
    'org/open': {
      commit: COMMIT,
      branches: ['main', 'refs/pr/1'],
      files: { ...files, 'large.bin': fakeFile('large', true) },
    },
    'org/gated': { commit: COMMIT, files, access: 'gated' },
    'org/private': { commit: COMMIT, files, access: 'private' },
  })
})

afterEach(() => hub.close())

function list(repo: string, change: { revision?: string; token?: string } = {}) {
  const { revision = null, token = null } = change
  return listHubFiles(testHub(hub, { token }), { repo, revision }, new AbortController().signal)
}

test('a revision becomes a commit, and every page of the list is read', async () => {
  const listing = await list('org/open', { revision: 'refs/pr/1' })
  expect(listing.commit).toBe(COMMIT)
  expect(listing.files.map(({ path }) => path)).toEqual([
    ...NAMES.map((name) => `${name}.txt`),
    'large.bin',
  ])
  const large = fakeFile('large')
  expect(listing.files.at(-1)).toEqual({
    path: 'large.bin',
    bytes: 5,
    hash: { kind: 'sha256', hex: large.sha256 },
  })
  expect(listing.files[0]?.hash).toEqual({ kind: 'git-blob', hex: fakeFile('a').gitSha1 })
  // The commit is asked for, not the branch, so that no page is of another state.
  const pages = hub.requests.filter(({ path }) => path.includes('/tree/'))
  expect(pages).toHaveLength(3)
  expect(pages.every(({ path }) => path.includes(COMMIT))).toBe(true)
})

test.each([
  ['org/none', {}, 'model-not-found', /no model org\/none, or it is private and needs a token/],
  ['org/none', { token: HUB_TOKEN }, 'model-not-found', /that this token may see/],
  ['org/private', {}, 'model-not-found', /needs a token/],
  ['org/gated', {}, 'hub-denied', /is gated: ask for it at http.*org\/gated/],
  ['org/gated', { token: 'wrong' }, 'hub-denied', /not let in yet/],
  ['org/open', { revision: 'v9' }, 'model-not-found', /no branch, tag or commit "v9"/],
] as const)('%s with %o: %s', async (repo, change, code, text) => {
  const failed = list(repo, change)
  await expect(failed).rejects.toMatchObject({ code })
  await expect(failed).rejects.toThrow(text)
})

test('a token opens what is gated', async () => {
  expect((await list('org/gated', { token: HUB_TOKEN })).files).toHaveLength(NAMES.length)
})

const always = (): boolean => true

test.each([
  [{ kind: 'status', status: 200 }, 'hub-unavailable', /no commit; is it a hub/],
  [
    { kind: 'status', status: 418, headers: { 'x-error-message': 'teapot' } },
    'hub-unavailable',
    /418: teapot/,
  ],
  [{ kind: 'status', status: 401 }, 'model-not-found', /needs a token/],
  [{ kind: 'status', status: 502 }, 'hub-unavailable', /502/],
] as const)('the answer %o is an error in words', async (fault: HubFault, code, text) => {
  hub.fault(always, fault, Infinity)
  const failed = list('org/open')
  await expect(failed).rejects.toMatchObject({ code })
  await expect(failed).rejects.toThrow(text)
})

test('one bad gateway is not the end', async () => {
  hub.fault(always, { kind: 'status', status: 502 }, 3)
  expect((await list('org/open')).files).toHaveLength(8)
})
