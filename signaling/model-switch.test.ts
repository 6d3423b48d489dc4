import { expect, test } from 'vitest'
import { modelOf } from '../test/support/host-fixtures.ts'
import { fakeSwarm } from '../test/support/fake-swarm.ts'
import type { HostedModel } from './hosted-model.ts'
import { createModelSwitch } from './model-switch.ts'

const model: HostedModel = {
  name: 'large',
  isBuiltin: true,
  manifest: modelOf(),
  directory: '/none',
}

test('each block that is cut is a step that the swarm shows, also to whoever asks again', async () => {
  const { service } = fakeSwarm(modelOf(), 1)
  let tell: (step: string) => void = () => undefined
  let opened = 0
  let finish: (model: HostedModel) => void = () => undefined
  const modelSwitch = createModelSwitch({
    library: {
      list: () => Promise.resolve([{ name: 'large', isBuiltin: true, size: null, problem: '' }]),
      open: (_name, onStep) => {
        opened += 1
        tell = onStep
        return new Promise((resolve) => (finish = resolve))
      },
    },
    models: { add: () => undefined },
    service,
    makeReady: () => Promise.resolve(),
    minStages: () => 1,
    log: () => undefined,
  })
  const step = (): string | undefined => service.snapshot().change?.step
  await modelSwitch.use('large', true)
  tell('1 of 30')
  expect(step()).toBe('1 of 30')
  await modelSwitch.use('large', true)
  tell('2 of 30')
  expect(step()).toBe('2 of 30')
  expect(opened).toBe(1)
  finish(model)
})
