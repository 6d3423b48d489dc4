import { expect, test } from 'vitest'
import { fakeSwarm } from '../test/support/fake-swarm.ts'
import { modelOf } from '../test/support/host-fixtures.ts'
import { createLiveStatus } from './live-status.ts'
import { bannerLines, statusLine } from './status-lines.ts'
import { hostUrls } from './urls.ts'

const urls = (over = {}) =>
  hostUrls({
    port: 7080,
    host: '0.0.0.0',
    secure: false,
    secret: 's3',
    addresses: ['192.168.1.5', '10.0.0.2'],
    ...over,
  })
const banner = (over = {}, secret: string | null = 's3', hasKeys = false) =>
  bannerLines({
    started: { urls: urls(over), secret, adminToken: 'mine' },
    modelId: 'm',
    hasKeys,
    qrCode: '',
  }).join('\n')

test('the banner has every link and says how phones get their GPU', () => {
  const text = banner()
  for (const link of [
    'http://localhost:7080/#s=s3',
    'http://localhost:7080/join#s=s3',
    'http://192.168.1.5:7080/join#s=s3',
    'http://10.0.0.2:7080/join#s=s3',
    'http://localhost:7080/v1',
    'http://localhost:7080/dashboard#s=s3&a=mine',
  ])
    expect(text).toContain(link)
  expect(text).toMatch(/no GPU.*plain http/)
  expect(text).toContain('--https')
  expect(banner({ secure: true })).not.toContain('--https')
  expect(banner({ secret: null }, null)).toContain('This pool is open')
  expect(banner({ secret: null }, null)).toContain('http://localhost:7080/dashboard#a=mine')
  expect(banner({ host: '127.0.0.1' })).toContain('listens on this machine only')
})

test('the banner says what the API takes as its key', () => {
  const line = (text: string) => text.split('\n').find((one) => one.includes('/v1'))
  const start = '  OpenAI clients      http://localhost:7080/v1'
  expect(line(banner())).toBe(`${start}, key s3`)
  expect(line(banner({ secret: null }, null))).toBe(start)
  for (const secret of ['s3', null])
    expect(line(banner({ secret }, secret, true))).toBe(
      `${start}, key: one of yours (crowdinfer key list)`,
    )
})

test('the status says who is here, what is missing and what was done', () => {
  const swarm = fakeSwarm(modelOf(), 3)
  const line = () => statusLine(swarm.service.snapshot())
  expect(line()).toBe('0 devices (0 ready) · 6 of 6 layers missing: open 3 more tabs · 0 laps')
  swarm.worker('a')
  swarm.worker('b')
  expect(line()).toBe(
    '2 devices (2 ready) · 2 of 6 layers missing: open one more tab (layers 5–6 and head) · 0 laps',
  )
  swarm.worker('c')
  expect(line()).toBe('3 devices (3 ready) · every layer held: ask away · 0 laps')
  swarm.ask(swarm.join('asker', 'asker'), 'r1')
  expect(line()).toContain('1 answer')
})

test('a line is rewritten in place on a terminal and printed only when it changed', () => {
  const written: string[] = []
  const write = (text: string) => written.push(text)
  const status = createLiveStatus({ write, isTTY: true, columns: 12 }, () => 0)
  status.show('one')
  status.show('one')
  status.show('a line that is too long')
  status.close()
  expect(written).toEqual(['\r\u001b[2K  one', '\r\u001b[2K  a line th', '\n'])
})

test('a log gets whole lines, not too often', () => {
  const written: string[] = []
  let now = 0
  const status = createLiveStatus({ write: (text: string) => written.push(text) }, () => now)
  status.show('one')
  status.show('two')
  now = 1_500
  status.show('three')
  status.close()
  expect(written).toEqual(['one\n', 'three\n'])
})
