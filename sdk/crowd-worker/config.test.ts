import { describe, expect, test } from 'vitest'
import { readCommandLine } from './command-line.ts'
import { parseWorkerConfig, type Environment, type WorkerConfig } from './config.ts'

const LINK = 'http://localhost:7080/join#s=abc'
const machine = {
  hostname: 'box',
  memoryBytes: 8e9,
  dataDirectory: (given: string | undefined, { CROWDINFER_DATA }: Environment) =>
    given ?? CROWDINFER_DATA ?? '/home/me/.crowdinfer',
}

/** The configuration of a whole command line. */
function configOf(args: readonly string[], environment: Environment = {}): WorkerConfig {
  const line = readCommandLine(args, { version: '1', write: () => undefined })
  if (line.kind === 'done') throw new Error('nothing to run')
  return parseWorkerConfig(line, environment, machine)
}

const refusal = (args: readonly string[], environment?: Environment): string => {
  try {
    configOf(args, environment)
  } catch (thrown) {
    expect(thrown).toMatchObject({ code: 'bad-option' })
    return (thrown as Error).message
  }
  throw new Error('it was taken')
}

test('a link alone is enough', () => {
  expect(configOf([LINK])).toEqual({
    link: { origin: 'http://localhost:7080', secret: 'abc' },
    name: 'box',
    pledgeBytes: 4e9,
    ort: { prefer: 'auto', requireGpu: false },
    dataDir: '/home/me/.crowdinfer',
    once: false,
    json: false,
  })
})

test('every flag has its variable, and flags win', () => {
  const flags = ['--join', LINK, '--name', 'gpu-1', '--memory', '2GB', '--threads', '3']
  const more = ['--provider', 'cuda', '--require-gpu', '--data', '/d', '--once', '--json']
  const environment = {
    CROWDINFER_JOIN: LINK,
    CROWDINFER_NAME: 'gpu-1',
    CROWDINFER_MEMORY: '2GB',
    CROWDINFER_THREADS: '3',
    CROWDINFER_PROVIDER: 'cuda',
    CROWDINFER_REQUIRE_GPU: '1',
    CROWDINFER_DATA: '/d',
    CROWDINFER_ONCE: 'yes',
    CROWDINFER_JSON: 'true',
  }
  expect(configOf([...flags, ...more])).toEqual(configOf([], environment))
  expect(configOf([...flags, ...more]).ort).toEqual({
    prefer: 'cuda',
    requireGpu: true,
    threads: 3,
  })
  expect(configOf(['--name', 'other'], environment).name).toBe('other')
  const elsewhere = 'https://example.org/join#s=x'
  expect(configOf([elsewhere], environment).link.origin).toBe('https://example.org')
})

test.each([
  ['2GB', 2e9],
  ['512MB', 512e6],
  ['1.5 GiB', 1.5 * 2 ** 30],
  ['1tb', 1e12],
])('--memory %s is %d bytes', (text, bytes) => {
  expect(configOf([LINK, '--memory', text]).pledgeBytes).toBe(bytes)
})

describe('what is refused, and how', () => {
  test.each(['2', 'GB', '-1GB', '0.1MB', '2XB', '99999999999TB'])('--memory %s', (text) => {
    expect(refusal([LINK, `--memory=${text}`])).toMatch(/--memory.*2GB or 512MB/)
  })
  test.each(['0', '1.5', '257', 'all'])('--threads %s', (text) => {
    expect(refusal([LINK, `--threads=${text}`])).toMatch(/--threads/)
  })
  test('a provider that there is not', () => {
    expect(refusal([LINK, '--provider', 'metal'])).toMatch(/auto, cuda, webgpu, cpu/)
  })
  test('the CPU where a GPU is required', () => {
    expect(refusal([LINK, '--provider', 'cpu', '--require-gpu'])).toMatch(/exclude each other/)
  })
  test.each(['localhost:7080', 'abc', 'ftp://host/join', '/join#s=a'])('%s as a link', (text) => {
    expect(refusal([text])).toContain(`"${text}" is no join link`)
  })
  test('no link, and two of them', () => {
    expect(refusal([])).toMatch(/Give the join link/)
    expect(refusal([LINK, '--join', `${LINK}d`])).toMatch(/two join links/)
    expect(configOf([LINK, '--join', LINK]).link.secret).toBe('abc')
  })
  test('flags and arguments that there are not', () => {
    expect(refusal([LINK, '--gpu'])).toMatch(/--gpu/)
    expect(refusal([LINK, LINK])).toMatch(/too many arguments/i)
  })
  test('a switch that is neither on nor off', () => {
    expect(refusal([LINK], { CROWDINFER_ONCE: 'maybe' })).toMatch(/CROWDINFER_ONCE: "maybe"/)
  })
})

test('a link without a secret is for an open pool; a name is cut to what others take', () => {
  expect(configOf(['https://example.org/join']).link.secret).toBe('')
  expect(configOf([LINK, '--name', 'x'.repeat(100)]).name).toHaveLength(60)
})

test('--help and --version print and run nothing', () => {
  const written: string[] = []
  const output = { version: '1.2.3', write: (text: string) => void written.push(text) }
  expect(readCommandLine(['--help'], output)).toEqual({ kind: 'done' })
  expect(readCommandLine(['--version'], output)).toEqual({ kind: 'done' })
  expect(written.join('')).toMatch(/--require-gpu.*CROWDINFER_JSON.*Ctrl-C.*1\.2\.3/s)
})
