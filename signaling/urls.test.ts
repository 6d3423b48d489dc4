import { expect, test } from 'vitest'
import { hostUrls, lanAddresses } from './urls.ts'

const base = {
  port: 7080,
  host: '0.0.0.0',
  secure: false,
  secret: 's3',
  addresses: ['192.168.1.5'],
}

test('the secret travels in the fragment', () => {
  expect(hostUrls(base)).toEqual({
    chat: 'http://localhost:7080/#s=s3',
    join: 'http://localhost:7080/join#s=s3',
    dashboard: 'http://localhost:7080/dashboard#s=s3',
    api: 'http://localhost:7080/v1',
    lanJoin: ['http://192.168.1.5:7080/join#s=s3'],
    secure: false,
  })
  expect(hostUrls({ ...base, secret: null, secure: true }).chat).toBe('https://localhost:7080/')
})

test('only addresses that the host listens on are offered', () => {
  expect(hostUrls({ ...base, host: '127.0.0.1' }).lanJoin).toEqual([])
  const bound = hostUrls({ ...base, host: '10.0.0.9' })
  expect(bound.chat).toBe('http://10.0.0.9:7080/#s=s3')
  expect(bound.lanJoin).toEqual(['http://10.0.0.9:7080/join#s=s3'])
  expect(hostUrls({ ...base, host: 'fd00::1' }).chat).toBe('http://[fd00::1]:7080/#s=s3')
})

test('home networks come before those of containers; loopback and link-local never', () => {
  const address = (ip: string, internal = false) => ({
    address: ip,
    family: 'IPv4' as const,
    internal,
    netmask: '',
    mac: '',
    cidr: null,
  })
  expect(
    lanAddresses({
      lo: [address('127.0.0.1', true)],
      docker0: [address('172.17.0.1')],
      tun0: [address('10.8.0.2')],
      eth0: [address('10.1.2.3'), address('169.254.1.1')],
      wlan0: [address('192.168.1.5')],
    }),
  ).toEqual(['192.168.1.5', '10.1.2.3', '172.17.0.1', '10.8.0.2'])
})
