import { expect, test } from 'vitest'
import { describeChannelContract } from '../../test/contracts/channel.contract.ts'
import { createManualTimers } from '../../test/support/manual-timers.ts'
import { createMemoryWire } from './memory-link.ts'

describeChannelContract('memory', 'local', () => {
  const wire = createMemoryWire({ timers: createManualTimers() })
  return Promise.resolve({ a: wire.a, b: wire.b, close: () => wire.break('test over') })
})

test('placeholder', () => expect(1).toBe(1))
