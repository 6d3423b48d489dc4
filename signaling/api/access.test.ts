import { describe, expect, test } from 'vitest'
import { createAccess, type Caller, type Wanted } from './access.ts'

const SECRET = 'the-pools-secret'
const LOCAL: Caller = {
  authorization: undefined,
  address: '127.0.0.1',
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
  const admits = async (caller: Partial<Caller>, wanted: Wanted = 'answers'): Promise<boolean> => {
    try {
      await access.admit({ ...LOCAL, ...caller }, wanted)
      return true
    } catch (thrown) {
      expect(thrown).toMatchObject({ code: 'wrong-secret' })
      return false
    }
  }
  return { access, admits, pass: (ms: number) => (now += ms) }
}

const LAN = { address: '192.168.1.9' }

describe('a private pool without keys', () => {
  const { admits } = accessOf({})

  test.each([
    ['who has the secret', { ...LAN, authorization: `Bearer ${SECRET}` }],
    ['… in another spelling of the header', { ...LAN, authorization: `bearer  ${SECRET} ` }],
    ['a program here that has it', { authorization: `Bearer ${SECRET}` }],
  ])('lets in %s', async (_who, caller) => {
    expect(await admits(caller)).toBe(true)
  })

  test.each([
    ['another machine', LAN],
    ['another machine with a wrong key', { ...LAN, authorization: 'Bearer guess' }],
    ['a program here, or what a tunnel makes look like one', {}],
    ['… by IPv6', { address: '::1' }],
    ['… by an IPv4 address inside IPv6', { address: '::ffff:127.0.0.1' }],
    ['… that sends some key, as SDKs must', { authorization: 'Bearer none' }],
    ['… with an empty key', { authorization: 'Bearer ' }],
  ])('keeps out %s', async (_who, caller) => {
    expect(await admits(caller)).toBe(false)
  })
})

test('an open pool without keys lets everybody in', async () => {
  const { admits } = accessOf({ open: true })
  expect(await admits(LAN)).toBe(true)
})

test.each([true, false])('once there are keys only they count (open: %s)', async (open) => {
  const { admits } = accessOf({ keys: ['one', 'two'], open })
  expect(await admits({})).toBe(false)
  expect(await admits({ authorization: `Bearer ${SECRET}` })).toBe(false)
  expect(await admits({ authorization: 'Basic two' })).toBe(false)
  expect(await admits({ ...LAN, authorization: 'Bearer two' })).toBe(true)
})

test('what is served is no secret until there are keys', async () => {
  for (const authorization of [undefined, 'Bearer none'])
    expect(await accessOf({}).admits({ ...LAN, authorization }, 'models')).toBe(true)
  const { admits } = accessOf({ keys: ['one'], open: true })
  expect(await admits({}, 'models')).toBe(false)
  expect(await admits({ authorization: 'Bearer one' }, 'models')).toBe(true)
})

test('each caller has a rate of its own, and learns when to come back', async () => {
  const { access, admits, pass } = accessOf({ keys: ['one', 'two'] })
  const one = { ...LOCAL, authorization: 'Bearer one' }
  for (let count = 0; count < 120; count += 1) await access.admit(one, 'answers')
  await expect(access.admit(one, 'answers')).rejects.toMatchObject({ status: 429, retryAfterS: 1 })
  expect(await admits({ authorization: 'Bearer two' })).toBe(true)
  pass(1_000)
  expect(await admits(one)).toBe(true)
})

test('guessing keys is slowed down by address', async () => {
  const { access } = accessOf({ keys: ['one'] })
  for (let count = 0; count < 120; count += 1)
    await expect(
      access.admit({ ...LOCAL, authorization: `Bearer ${count}` }, 'answers'),
    ).rejects.toMatchObject({ code: 'wrong-secret' })
  await expect(
    access.admit({ ...LOCAL, authorization: 'Bearer 121' }, 'models'),
  ).rejects.toMatchObject({
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
