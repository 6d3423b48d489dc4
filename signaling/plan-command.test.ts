import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { fakeRing } from '../test/support/fake-swarm.ts'
import { modelOf } from '../test/support/host-fixtures.ts'
import { runCli } from './cli.ts'
import { addPlanCommand } from './plan-cli.ts'
import { planOfHost } from './plan-command.ts'
import { parsePlanDevices } from './plan-devices.ts'
import { planLines, type ShownPlan } from './plan-lines.ts'
import { swarmSnapshotOf } from './swarm-snapshot.ts'

let dataDir = ''
beforeEach(async () => {
  dataDir = await mkdtemp(join(tmpdir(), 'crowdinfer-plan-'))
})
afterEach(() => rm(dataDir, { recursive: true, force: true }))

async function plan(...args: string[]): Promise<string> {
  const lines: string[] = []
  await runCli(
    ['plan', ...args, '--data', dataDir],
    {
      start: () => Promise.reject(new Error('not this')),
      commands: [(program) => addPlanCommand(program, (line) => lines.push(line))],
    },
    { version: '0', environment: {} },
  )
  return lines.join('\n')
}

test('devices are read as size, provider and speed', () => {
  const read = parsePlanDevices('4GB, 512mb@wasm,8GB@webgpu:12ms,1gb:cpu:0.5ms,2GB@3ms').map(
    ({ pledgeBytes, provider, msPerLayer }) => [pledgeBytes, provider, msPerLayer],
  )
  expect(read).toEqual([
    [4e9, 'webgpu', null],
    [512e6, 'wasm', null],
    [8e9, 'webgpu', 12],
    [1e9, 'cpu', 0.5],
    [2e9, 'webgpu', 3],
  ])
  for (const wrong of ['', '4', 'GB', '0GB', '4GB@npu', '4GB@wasm:0ms', '4GB,,2GB', '-1GB'])
    expect(() => parsePlanDevices(wrong), wrong).toThrow(/is no device/)
  expect(() => parsePlanDevices('1GB,'.repeat(300))).toThrow(/at most/)
})

test('a built-in model on two devices that are not there: who holds what, why, and the lap', async () => {
  const text = await plan('crowdtalk-2.6m', '--devices', '64MB@wasm:2ms,64MB@wasm:2ms')
  expect(text).toContain('crowdtalk-2.6m, 6 layers')
  expect(text).toMatch(/1 +wasm +64.0 MB +\S+ MB +embedding and layers 1–3 +newcomer fills/)
  expect(text).toMatch(/2 +wasm +64.0 MB +\S+ MB +layers 4–6 and head/)
  expect(text).toMatch(/Predicted: a lap of \d+ ms over 2 hops, \d+ tokens a second/)
})

test('what is missing is said in bytes and devices, and --json has the same', async () => {
  const args = ['qwen/qwen3-8b', '--dtype', 'q4', '--devices', '2GB,1GB']
  const text = await plan(...args)
  expect(text).toMatch(/Missing: .*\d GB short: one more device of \d+ GB\./)
  // The command prints one JSON object of this shape.
  const json = JSON.parse(await plan(...args, '--json')) as ShownPlan
  expect(json.lapMs).toBeNull()
  expect(json.missing.length).toBeGreaterThan(0)
  expect(json.devices.map(({ bytes, pledgeBytes }) => bytes > 0 && bytes <= pledgeBytes)).toEqual([
    true,
    true,
  ])
})

test('what makes no sense is refused', async () => {
  await expect(plan('crowdtalk-2.6m')).rejects.toMatchObject({ code: 'bad-option' })
  await expect(plan('--devices', '4GB')).rejects.toMatchObject({ code: 'bad-option' })
  await expect(plan('no-such-model', '--devices', '4GB')).rejects.toMatchObject({
    code: 'model-not-found',
  })
  await expect(plan('--host', 'not an address')).rejects.toMatchObject({ code: 'bad-option' })
})

test('the plan of a running host, with the secret of its link', async () => {
  const { swarm } = fakeRing(modelOf(), 2)
  const asked: (readonly [string, string | null])[] = []
  const shown = await planOfHost('http://host.test:1/join#s=secret', (input, init) => {
    asked.push([
      input instanceof URL ? input.href : '',
      new Headers(init?.headers).get('authorization'),
    ])
    return Promise.resolve(Response.json(swarmSnapshotOf(swarm.service.state(), [])))
  })
  expect(asked).toEqual([['http://host.test:1/api/swarm', 'Bearer secret']])
  expect(shown.devices.map(({ name, now, range }) => [name, now, range])).toEqual([
    ['w0', { start: 0, end: 4 }, { start: 0, end: 4 }],
    ['w1', { start: 4, end: 8 }, { start: 4, end: 8 }],
  ])
  expect(shown.lapMs).toBeGreaterThan(0)
  expect(planLines(shown, 120).join('\n')).toMatch(/w0 .*holds embedding and layers 1–3/)
  const refused = planOfHost('http://host.test:1', () => Promise.resolve(Response.json({})))
  await expect(refused).rejects.toMatchObject({ code: 'host-unreachable' })
})
