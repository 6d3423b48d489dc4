import { expect, test } from 'vitest'
import { CrowdError } from '../core/errors.ts'
import type { RunnerReport } from '../runtime/stage-runner.ts'
import { createReviver } from './reviver.ts'

const report: RunnerReport = {
  provider: 'wasm',
  threads: 1,
  notes: ['webgpu: the device was lost'],
}

function setUp() {
  const kit = {
    starts: 0,
    lost: true,
    revived: [] as RunnerReport[],
    givenUp: [] as unknown[],
    startFails: false,
    now: 0,
    refusals: [] as (CrowdError | undefined)[],
  }
  const reviver = createReviver({
    runner: {
      start: () => {
        kit.starts += 1
        return kit.startFails
          ? Promise.reject(new CrowdError('provider-unavailable', 'nothing runs'))
          : Promise.resolve(report)
      },
    },
    holder: {
      reload(refusal) {
        kit.refusals.push(refusal)
        return Promise.resolve(kit.lost)
      },
    },
    now: () => kit.now,
    onRevived: (found) => kit.revived.push(found),
    onGivenUp: (thrown) => kit.givenUp.push(thrown),
  })
  const fail = async (code: string): Promise<void> => {
    reviver.stepFailed(code)
    await new Promise((resolve) => setImmediate(resolve))
  }
  const lose = async (): Promise<void> => {
    reviver.runnerLost()
    await new Promise((resolve) => setImmediate(resolve))
  }
  return { kit, fail, lose }
}

test('after a lost device the runner starts anew and its blocks are loaded again', async () => {
  const { kit, fail } = setUp()
  await fail('stage-failed')
  expect(kit.revived).toEqual([report])
})

test('a runner that was lost while nothing ran is brought back too, once', async () => {
  const { kit, lose, fail } = setUp()
  await Promise.all([fail('stage-failed'), lose()])
  expect(kit).toMatchObject({ starts: 1, revived: [report] })
  await lose()
  expect(kit.revived).toEqual([report, report])
})

test('a healthy runner is left alone, and so is one whose input was wrong', async () => {
  const { kit, fail } = setUp()
  kit.lost = false
  await fail('stage-failed')
  await fail('bad-frame')
  expect(kit).toMatchObject({ starts: 1, revived: [], givenUp: [] })
})

test('a device that is lost comes back as it was, then smaller, then not at all', async () => {
  const { kit, fail } = setUp()
  for (let loss = 0; loss < 2; loss += 1) await fail('timeout')
  expect(kit.refusals).toMatchObject([undefined, { code: 'out-of-memory' }])
  expect(kit).toMatchObject({ revived: [report, report], givenUp: [] })
  await fail('timeout')
  expect(kit.revived).toHaveLength(2)
  expect(kit.givenUp).toMatchObject([{ code: 'stage-failed' }])
})

test('a device that is lost once in a long while comes back as it was', async () => {
  const { kit, fail } = setUp()
  for (let loss = 0; loss < 4; loss += 1) {
    await fail('stage-failed')
    kit.now += 2_000_000
  }
  expect(kit.refusals).toEqual([undefined, undefined, undefined, undefined])
  expect(kit.givenUp).toEqual([])
})

test('a device that does not come back gives up with the reason', async () => {
  const { kit, fail } = setUp()
  kit.startFails = true
  await fail('stage-failed')
  expect(kit.givenUp).toMatchObject([{ code: 'provider-unavailable' }])
})
