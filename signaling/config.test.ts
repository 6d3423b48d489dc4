import { homedir } from 'node:os'
import { join, resolve } from 'node:path'
import { describe, expect, test } from 'vitest'
import { runCli, type CliActions } from './cli.ts'
import { DEFAULT_MODEL, parseConfig, type Config } from './config.ts'

describe('parseConfig', () => {
  test('defaults', () => {
    expect(parseConfig({}, {})).toEqual({
      model: DEFAULT_MODEL,
      port: 7080,
      host: '0.0.0.0',
      tls: { kind: 'off' },
      public: false,
      dataDir: join(homedir(), '.crowdinfer'),
      open: false,
      stages: 'auto',
      iceServers: [],
    })
  })

  test('the environment sets what flags leave open', () => {
    const environment = {
      CROWDINFER_PORT: '8000',
      CROWDINFER_PUBLIC: 'yes',
      CROWDINFER_DATA: '/tmp/crowd',
      CROWDINFER_STAGES: '3',
      CROWDINFER_MODEL: ' ',
    }
    expect(parseConfig({ port: '9000' }, environment)).toMatchObject({
      port: 9_000,
      public: true,
      dataDir: resolve('/tmp/crowd'),
      stages: 3,
      model: DEFAULT_MODEL,
    })
  })

  test('a wrong value is named with what it should be', () => {
    const cases: [Parameters<typeof parseConfig>, RegExp][] = [
      [[{ port: '70000' }], /--port: "70000" is not a port/],
      [[{ port: '80a' }], /--port/],
      [[{ stages: '0' }], /--stages: "0"/],
      [[{ cert: 'a.pem' }], /--cert needs --key/],
      [[{ key: 'a.pem' }], /--key needs --cert/],
      [[{ ice: '[{' }], /--ice: not valid JSON/],
      [[{ ice: '[{"urls":"http://x"}]' }], /--ice: not a list of STUN or TURN/],
      [[{}, { CROWDINFER_HTTPS: 'maybe' }], /CROWDINFER_HTTPS: "maybe"/],
    ]
    for (const [input, message] of cases) {
      expect(() => parseConfig(...input)).toThrow(message)
      expect(() => parseConfig(...input)).toThrow(expect.objectContaining({ code: 'bad-option' }))
    }
  })

  test('ICE servers as JSON or as one url with the login in it', () => {
    const list = [{ urls: 'stun:stun.example.org' }]
    expect(parseConfig({ ice: JSON.stringify(list) }).iceServers).toEqual(list)
    expect(parseConfig({ ice: 'turn:me:word@turn.example.org:3478' }).iceServers).toEqual([
      { urls: 'turn:turn.example.org:3478', username: 'me', credential: 'word' },
    ])
  })

  test('certificate files win over the own certificate', () => {
    expect(parseConfig({ https: true }).tls).toEqual({ kind: 'own' })
    expect(parseConfig({ https: true, cert: 'c', key: 'k' }).tls).toEqual({
      kind: 'files',
      cert: 'c',
      key: 'k',
    })
  })
})

describe('the command line', () => {
  async function run(args: string[], environment = {}): Promise<{ text: string; config?: Config }> {
    const seen: { text: string; config?: Config } = { text: '' }
    const actions: CliActions = {
      start: (config) => {
        seen.config = config
        return Promise.resolve()
      },
      commands: [(program) => void program.command('other <word>').action(() => undefined)],
    }
    const write = (text: string) => (seen.text += text)
    expect(await runCli(args, actions, { version: '1.2.3', environment, write })).toBe(0)
    return seen
  }

  test('flags reach the config, with and without the word start', async () => {
    for (const args of [[], ['start']]) {
      const flags = ['--port', '0', '--public', '--data', '/d', '--stages', '3']
      const { config } = await run([...args, ...flags])
      expect(config).toMatchObject({
        port: 0,
        public: true,
        dataDir: resolve('/d'),
        stages: 3,
      })
    }
    expect((await run([], { CROWDINFER_PORT: '81' })).config?.port).toBe(81)
  })

  test('help lists every flag and starts nothing', async () => {
    const { text, config } = await run(['--help'])
    expect(config).toBeUndefined()
    for (const flag of ['model', 'port', 'host', 'https', 'cert', 'key', 'public', 'data', 'open'])
      expect(text).toContain(`--${flag}`)
    for (const flag of ['--stages', '--ice', 'CROWDINFER_PORT']) expect(text).toContain(flag)
    expect((await run(['--version'])).text.trim()).toBe('1.2.3')
  })

  test('unknown flags, missing values and stray words are clear errors', async () => {
    await expect(run(['--prot', '8080'])).rejects.toMatchObject({ code: 'bad-option' })
    await expect(run(['--prot', '8080'])).rejects.toThrow(/unknown option '--prot'/)
    await expect(run(['--port'])).rejects.toThrow(/argument missing/)
    await expect(run(['start', 'now'])).rejects.toMatchObject({ code: 'bad-option' })
    await expect(run(['strat'])).rejects.toMatchObject({ code: 'bad-option' })
    await expect(run(['--port', 'x'])).rejects.toThrow(/is not a port/)
  })
})
