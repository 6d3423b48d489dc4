import { describe, expect, test } from 'vitest'
import { isLoopback, joinLink, pageLink, readAddress, sharedOrigin } from './page-address.ts'

describe('the address of a page', () => {
  test('gives the secret and the wishes in the fragment', () => {
    const address = readAddress(
      '#s=a%2Fb-c_d&name=kitchen%20tablet&pledge=2.5&provider=wasm&auto=1&a=mine',
    )
    expect(address).toEqual({
      secret: 'a/b-c_d',
      adminToken: 'mine',
      name: 'kitchen tablet',
      pledgeMb: 2.5,
      provider: 'wasm',
      auto: true,
    })
  })

  test('leaves out what makes no sense', () => {
    const address = readAddress('#pledge=-3&provider=abacus&auto=yes')
    expect(address).toEqual({
      secret: '',
      adminToken: '',
      name: '',
      pledgeMb: null,
      provider: null,
      auto: false,
    })
    expect(readAddress('#pledge=lots').pledgeMb).toBeNull()
    expect(readAddress('').secret).toBe('')
  })

  test('never lets a name grow beyond the protocol', () => {
    expect(readAddress(`#name=${'x'.repeat(500)}`).name).toHaveLength(60)
  })

  test('passes the secret on to the other pages, and only the secret', () => {
    const { secret } = readAddress('#s=a%2Fb&auto=1')
    expect(pageLink('dashboard', secret)).toBe('/dashboard#s=a%2Fb')
    expect(readAddress(new URL(joinLink('http://host:7080', secret)).hash).secret).toBe('a/b')
    expect(pageLink('chat', '')).toBe('/')
  })

  test('invites other devices to an address that they can reach', () => {
    const lan = ['http://localhost:7080', 'nonsense', 'http://192.168.1.4:7080']
    expect(sharedOrigin('http://localhost:7080', lan)).toBe('http://192.168.1.4:7080')
    expect(sharedOrigin('http://localhost:7080', [])).toBe('http://localhost:7080')
    expect(sharedOrigin('https://pool.example', lan)).toBe('https://pool.example')
  })

  test('knows which addresses work on one machine only', () => {
    expect(['localhost', '127.0.0.1', '[::1]', 'crowd.localhost'].map(isLoopback)).toEqual(
      Array(4).fill(true),
    )
    expect(['192.168.1.4', 'example.org', 'notlocalhost'].map(isLoopback)).toEqual(
      Array(3).fill(false),
    )
  })
})
