import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Command } from 'commander'
import { expect, test } from 'vitest'
import { runCli } from './cli.ts'
import { addModelUseCommand } from './model-use-cli.ts'
import { useModel } from './model-use.ts'

const CHANGE = {
  model: 'tall',
  phase: 'preparing',
  step: 'cutting',
  ready: 0,
  busy: 0,
  doneBytes: 0,
  totalBytes: 0,
  advice: '',
}
const loading = (over: object) => ({ change: { ...CHANGE, phase: 'loading', step: '', ...over } })

/** A host that answers with these bodies, one after the other, the last one again and again. */
function host(...answers: readonly object[]) {
  const asked: string[] = []
  const lines: string[] = []
  let now = 0
  const run = (model = 'tall', anyway = false) =>
    useModel(
      { host: 'http://host:7080', token: 'mine', model, anyway },
      {
        fetch: (input, init) => {
          const body = typeof init?.body === 'string' ? init.body : ''
          asked.push(`${init?.method ?? ''} ${new Request(input).url} ${body}`.trim())
          const answer = answers[Math.min(asked.length, answers.length) - 1]
          const whole = { served: 'small', change: null, failure: null, ...answer }
          return Promise.resolve(Response.json('error' in whole ? answer : whole))
        },
        wait(ms) {
          now += ms
          return Promise.resolve()
        },
        now: () => now,
        write: (line) => lines.push(line),
      },
    )
  return { run, asked, lines }
}

test('chooses, tells each step once and ends when the ring answers', async () => {
  const { run, asked, lines } = host(
    { change: CHANGE },
    { change: CHANGE },
    { change: { ...CHANGE, phase: 'draining' } },
    loading({ busy: 2, totalBytes: 4e6, doneBytes: 1e6 }),
    { served: 'tall' },
  )
  await run()
  expect(asked[0]).toBe('POST http://host:7080/api/admin/model {"model":"tall","anyway":false}')
  expect(new Set(asked.slice(1))).toEqual(new Set(['GET http://host:7080/api/models']))
  expect(lines).toEqual([
    'preparing: cutting',
    'waiting for the answers that run',
    'loading: 0 of 2 devices are ready, 1.0 of 4.0 MB',
    'tall is served.',
  ])
})

test('a model that is not served fails with the host’s reason, also after a way back', async () => {
  const failure = { model: 'tall', code: 'model-invalid', message: 'a piece is missing' }
  await expect(host({ change: CHANGE }, { failure }).run()).rejects.toMatchObject({
    code: 'model-invalid',
    message: 'a piece is missing',
  })
  const back = { ...loading({ model: 'small' }), failure }
  await expect(host(loading({ busy: 1 }), back).run()).rejects.toMatchObject({
    code: 'model-invalid',
  })
})

test('another choice meanwhile, a refusal, and no host at all', async () => {
  const replaced = host({ change: CHANGE }, loading({ model: 'third' }))
  await expect(replaced.run()).rejects.toMatchObject({ code: 'aborted' })
  const error = { code: 'not-the-operator', message: 'no' }
  await expect(host({ error }).run()).rejects.toMatchObject({ code: 'not-the-operator' })
  const refused = new TypeError('fetch failed', {
    cause: Object.assign(new Error(), { code: 'ECONNREFUSED' }),
  })
  const gone = useModel(
    { host: 'http://host:7080', token: '', model: 'tall', anyway: false },
    {
      fetch: () => Promise.reject(refused),
      wait: () => Promise.resolve(),
      now: () => 0,
      write: () => undefined,
    },
  )
  await expect(gone).rejects.toMatchObject({ code: 'host-unreachable' })
})

test('a ring that waits for more devices is not waited for', async () => {
  const { run, lines } = host(loading({ ready: 1, advice: '3 of 6 layers missing' }))
  await run('tall', true)
  expect(lines.at(-1)).toBe('tall is served; the ring is not complete: 3 of 6 layers missing')
})

test.each([[['model']], [['model', 'eat', 'x']], [['model', 'use']]])(
  '%j is refused',
  async (args) => {
    const start = () => Promise.resolve()
    const run = runCli(
      args,
      { start, commands: [addModelUseCommand] },
      { version: '1', environment: {} },
    )
    await expect(run).rejects.toMatchObject({ code: 'bad-option' })
  },
)

test('stands beside the other commands for models', async () => {
  const start = () => Promise.resolve()
  const done: string[] = []
  const others = (program: Command): void => {
    program
      .command('model')
      .command('list')
      .action(() => void done.push('list'))
  }
  const commands = [others, addModelUseCommand]
  await runCli(['model', 'list'], { start, commands }, { version: '1', environment: {} })
  expect(done).toEqual(['list'])
})

test('without the proof of the operator it says where that lies', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'crowdinfer-use-'))
  const start = () => Promise.resolve()
  const run = runCli(
    ['model', 'use', 'tall', '--data', folder],
    { start, commands: [addModelUseCommand] },
    { version: '1', environment: {} },
  )
  await expect(run).rejects.toMatchObject({
    code: 'not-the-operator',
    message: expect.stringContaining(join(folder, 'admin-token')) as string,
  })
  await rm(folder, { recursive: true, force: true })
})
