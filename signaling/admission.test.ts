import { expect, test } from 'vitest'
import type { PeerId } from '../sdk/core/ids.ts'
import { PROTOCOL } from '../sdk/protocol/version.ts'
import { createAdmission } from './admission.ts'

const helloOf = (peer: string, token: string) => ({
  kind: 'hello' as const,
  protocol: PROTOCOL,
  features: [],
  role: 'worker' as const,
  peer: peer as PeerId,
  token,
  name: '',
  secret: '',
})

test('SG14 an identity belongs to a device only once it has joined', () => {
  const admission = createAdmission(null)
  admission.check(helloOf('a', 'first, but the pool was full'))
  admission.check(helloOf('a', 'second'))
  admission.seat(helloOf('a', 'second'))
  expect(() => admission.check(helloOf('a', 'first, but the pool was full'))).toThrow(
    expect.objectContaining({ code: 'bad-request' }),
  )
})

test('SG14 devices that are here keep their identity, however many came and went', () => {
  const admission = createAdmission(null)
  admission.seat(helloOf('here', 'own'))
  const twice = [admission.seat(helloOf('again', 'own')), admission.seat(helloOf('again', 'own'))]
  twice[0]?.()
  admission.seat(helloOf('gone', 'own'))()
  for (let index = 0; index < 5_000; index++) admission.seat(helloOf(`p${index}`, 't'))()
  for (const peer of ['here', 'again'])
    expect(() => admission.check(helloOf(peer, 'stolen'))).toThrow(/another device/)
  admission.check(helloOf('gone', 'forgotten by now'))
})
