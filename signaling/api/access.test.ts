import { describe, expect, test } from 'vitest'
import { createAccess, type Caller } from './access.ts'

const SECRET = 'the-pools-secret'
const LOCAL: Caller = {
  authorization: undefined,
  address: '127.0.0.1',
  host: 'localhost:7080',
  origin: undefined,
  forwarded: false,
}

function accessOf(setting: { keys?: readonly string[]; open?: boolean }) {
  const { keys = [], open = false } = setting
  let now = 0
  const access = createAccess({
    check: (given) =>
      Promise.resolve({ any: keys.length > 0, id: keys.includes(given) ? given : null }),
    knowsSecret: (given) => open || given === SECRET,
    now: () => now,
  })
  const admits = async (caller: Partial<Caller>): Promise<boolean> => {
    try {
      await access.admit({ ...LOCAL, ...caller })
      return true
    } catch (thrown) {
      expect(thrown).toMatchObject({ code: 'wrong-secret' })
      return false
    }
  }
  return { access, admits, pass: (ms: number) => (now += ms) }
}

const LAN = { address: '192.168.1.9', host: '192.168.1.20:7080' }

describe('a private pool without keys', () => {
  const { admits } = accessOf({})

  test.each([
    ['a program here', {}],
    ['… by IPv6', { address: '::1', host: '[::1]:7080' }],
    ['… by an IPv4 address inside IPv6', { address: '::ffff:127.0.0.1', host: '127.0.0.1:7080' }],
    ['… that sends some key, as SDKs must', { authorization: 'Bearer none' }],
    ['a page here', { origin: 'http://localhost:3000' }],
    ['who has the secret', { ...LAN, authorization: `Bearer ${SECRET}` }],
    [
      'a page elsewhere that has the secret',
      { ...LAN, origin: 'https://example.org', authorization: `bearer  ${SECRET} ` },
    ],
  ])('lets in %s', async (_who, caller) => {
    expect(await admits(caller)).toBe(true)
  })

  test.each([
    ['another machine', LAN],
    ['another machine that lies about the name', { ...LAN, host: 'localhost:7080' }],
    ['another machine with a wrong key', { ...LAN, authorization: 'Bearer guess' }],
    ['a page of another site in a browser here', { origin: 'https://example.org' }],
    ['a page without an origin', { origin: 'null' }],
    ['a site whose name was pointed here', { host: 'rebound.example.org:7080' }],
    ['a tunnel that ends here', { host: 'pool.example.org' }],
    ['a proxy on this machine', { forwarded: true }],
    ['a name that only begins like ours', { host: 'localhost.example.org' }],
    ['no name at all', { host: undefined }],
  ])('keeps out %s', async (_who, caller) => {
    expect(await admits(caller)).toBe(false)
  })
})

test('an open pool without keys lets everybody in', async () => {
  const { admits } = accessOf({ open: true })
  expect(await admits({ ...LAN, origin: 'https://example.org' })).toBe(true)
})

test.each([true, false])('once there are keys only they count (open: %s)', async (open) => {
  const { admits } = accessOf({ keys: ['one', 'two'], open })
  expect(await admits({})).toBe(false)
  expect(await admits({ authorization: `Bearer ${SECRET}` })).toBe(false)
  expect(await admits({ authorization: 'Basic two' })).toBe(false)
  expect(await admits({ ...LAN, authorization: 'Bearer two' })).toBe(true)
})

test('each caller has a rate of its own, and learns when to come back', async () => {
  const { access, admits, pass } = accessOf({ keys: ['one', 'two'] })
  const one = { ...LOCAL, authorization: 'Bearer one' }
  for (let count = 0; count < 120; count += 1) await access.admit(one)
  await expect(access.admit(one)).rejects.toMatchObject({ status: 429, retryAfterS: 1 })
  expect(await admits({ authorization: 'Bearer two' })).toBe(true)
  pass(1_000)
  expect(await admits(one)).toBe(true)
})

test('guessing keys is slowed down by address', async () => {
  const { access } = accessOf({ keys: ['one'] })
  for (let count = 0; count < 120; count += 1)
    await expect(
      access.admit({ ...LOCAL, authorization: `Bearer ${count}` }),
    ).rejects.toMatchObject({ code: 'wrong-secret' })
  await expect(access.admit({ ...LOCAL, authorization: 'Bearer 121' })).rejects.toMatchObject({
    status: 429,
  })
})

test('nobody fills the queue alone', () => {
  const { access } = accessOf({})
  const leave = access.enter('one', 4)
  access.enter('one', 8)
  expect(() => access.enter('one', 1)).toThrow('12 answers of yours')
  access.enter('two', 12)
  leave()
  access.enter('one', 4)
  expect(() => access.enter('one', 1)).toThrow()
})
