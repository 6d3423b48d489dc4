import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'
import { startChild } from '../../test/support/child.ts'
import { wantsJson } from './config.ts'

const script = fileURLToPath(new URL('main.node.ts', import.meta.url))

async function refused(args: readonly string[], environment: Readonly<Record<string, string>>) {
  const child = startChild(['--import', 'tsx', script, ...args], environment)
  expect(await child.exited).toBe(78)
  return child.output()
}

test('what is wrong with the command line is told as JSON where that is wanted, with an exit code of its own', async () => {
  const [flag, variable, text] = await Promise.all([
    refused(['--json', '--gpu'], {}),
    refused(['not-a-link'], { CROWDINFER_JSON: '1' }),
    refused([], { CROWDINFER_JSON: '0' }),
  ])
  for (const line of [flag, variable])
    expect(JSON.parse(line)).toMatchObject({ event: 'error', code: 'bad-option' })
  expect(text).toMatch(/^crowd-worker: which host\?.*\n {2}See --help/)
})

test.each([
  [['--json'], {}, true],
  [[], { CROWDINFER_JSON: 'Yes' }, true],
  [[], { CROWDINFER_JSON: 'maybe' }, false],
  [['--join', 'x'], {}, false],
] as const)('%j with %j: JSON is wanted: %s', (args, environment, wanted) => {
  expect(wantsJson(args, environment)).toBe(wanted)
})
