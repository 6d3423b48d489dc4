import { validate } from 'dockerfile-utils'
import { existsSync, readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { describe, expect, test } from 'vitest'
import { parseDocument } from 'yaml'
import { readCommandLine } from '../../sdk/crowd-worker/command-line.ts'
import { FINAL_EXIT_CODE } from '../../sdk/crowd-worker/exit-code.ts'
import { DRAIN_MS } from '../../sdk/crowd-worker/run-worker.ts'

const root = resolve(import.meta.dirname, '../..')
const read = (name: string): string => readFileSync(join(root, name), 'utf8')

/** The variables that crowd-worker reads, as its help lists them. */
function knownVariables(): Set<string> {
  let help = ''
  readCommandLine(['--help'], { version: '', write: (text) => (help += text) })
  return new Set(help.match(/CROWDINFER_\w+/g))
}

const unknown = (names: Iterable<string>): string[] =>
  [...names].filter((name) => name.startsWith('CROWDINFER_') && !knownVariables().has(name))

/** The source of a file of dist/. */
const sourceOf = (built: string): string =>
  built.replace(/^\/app\/dist\//, '').replace(/\.js$/, '.ts')

describe('the Dockerfile', () => {
  const text = read('deploy/Dockerfile')

  test('is valid', () => {
    expect(validate(text)).toEqual([])
    expect(validate('FRM node')).not.toEqual([])
  })

  test('runs what the build makes, on a Node that the package takes, and not as root', () => {
    const entry = /^ENTRYPOINT (\[.*\])$/m.exec(text)?.[1] ?? '[]'
    const [program, script = ''] = JSON.parse(entry) as string[]
    expect(program).toBe('node')
    expect(existsSync(join(root, sourceOf(script)))).toBe(true)
    const bases = [...text.matchAll(/^FROM (\S+)/gm)].map(([, image]) => image)
    expect(new Set(bases)).toEqual(new Set(['node:20-bookworm-slim']))
    expect(text).toMatch(/^USER node$/m)
    expect(unknown(text.match(/CROWDINFER_\w+/g) ?? [])).toEqual([])
  })

  const ignored = read('deploy/Dockerfile.dockerignore').split('\n')

  test('takes neither what was built elsewhere nor the history', () => {
    expect(ignored).toEqual(expect.arrayContaining(['.git', 'dist', 'node_modules']))
  })

  test('keeps the pool’s secret out of the image and off the list of processes', () => {
    // Where the compose file tells people to write it.
    expect(read('deploy/compose.yaml')).toMatch(/#s=…"' > \.env$/m)
    expect(ignored).toContain('**/.env')
    const commands = text.match(/docker run .*/g) ?? []
    expect(commands).toHaveLength(1)
    expect(commands.join()).toContain('-e CROWDINFER_JOIN ')
    expect(commands.join()).not.toContain('#s=')
  })
})

describe('the compose file', () => {
  const document = parseDocument(read('deploy/compose.yaml'))
  // The shape is what the test is about.
  const compose = document.toJS() as {
    services: {
      worker: {
        build: { context: string; dockerfile: string }
        environment: Record<string, string>
        init: boolean
        network_mode: string
        restart: string
        stop_grace_period: string
        volumes: string[]
      }
    }
    volumes: Record<string, unknown>
  }
  const { worker } = compose.services

  test('is valid YAML, and starts one worker from the Dockerfile', () => {
    expect(document.errors).toEqual([])
    expect(Object.keys(compose.services)).toEqual(['worker'])
    const { build } = worker
    expect(existsSync(join(root, 'deploy', build.context, build.dockerfile))).toBe(true)
  })

  test('sets only variables that there are, asks for the link, keeps the pieces, waits for the drain', () => {
    expect(unknown(Object.keys(worker.environment))).toEqual([])
    expect(worker.environment['CROWDINFER_JOIN']).toMatch(/^\$\{CROWDINFER_JOIN:\?.+\}$/)
    const [volume = ''] = worker.volumes
    const [name = '', path] = volume.split(':')
    expect(compose.volumes).toHaveProperty(name)
    expect(read('deploy/Dockerfile')).toContain(`CROWDINFER_DATA=${path ?? 'nowhere'}`)
    expect(Number.parseInt(worker.stop_grace_period, 10) * 1_000).toBeGreaterThan(DRAIN_MS)
    expect([worker.network_mode, worker.init]).toEqual(['host', true])
  })

  test('gives up on what keeps failing', () => {
    // Docker cannot tell exit codes apart.
    expect(worker.restart).toMatch(/^on-failure:\d+$/)
  })
})

describe('the systemd unit', () => {
  /** Keys by section; a line is a comment, a section, a setting, or a fault. */
  function parseUnit(text: string): Map<string, Map<string, string>> {
    const sections = new Map<string, Map<string, string>>()
    let current = new Map<string, string>()
    for (const line of text.split('\n')) {
      const section = /^\[(\w+)\]$/.exec(line)?.[1]
      const [, key, value] = /^(\w+)=(.+)$/.exec(line) ?? []
      if (section !== undefined) sections.set(section, (current = new Map<string, string>()))
      else if (key !== undefined && value !== undefined) current.set(key, value)
      else if (line !== '' && !line.startsWith('#')) throw new Error(`no line of a unit: ${line}`)
    }
    return sections
  }

  const unit = parseUnit(read('deploy/crowd-worker.service'))
  const service = unit.get('Service') ?? new Map<string, string>()

  test('has the sections of a service, and starts a program of this package', () => {
    expect([...unit.keys()]).toEqual(['Unit', 'Service', 'Install'])
    const { bin } = JSON.parse(read('package.json')) as { bin: Record<string, string> }
    const [starter, program = ''] = service.get('ExecStart')?.split(' ') ?? []
    // The program's path differs between installations; the starter must be absolute.
    expect(starter).toBe('/usr/bin/env')
    expect(Object.keys(bin)).toContain(program)
    expect(unit.get('Install')?.get('WantedBy')).toBe('multi-user.target')
  })

  test('comes back after a crash, drains before it stops, writes to its own folder only', () => {
    expect(service.get('Restart')).toBe('on-failure')
    expect(service.get('RestartPreventExitStatus')).toBe(String(FINAL_EXIT_CODE))
    expect(Number(service.get('TimeoutStopSec')) * 1_000).toBeGreaterThan(DRAIN_MS)
    expect(service.get('Environment')).toBe(
      `CROWDINFER_DATA=%S/${service.get('StateDirectory') ?? ''}`,
    )
    expect(unknown(read('deploy/crowd-worker.service').match(/CROWDINFER_\w+/g) ?? [])).toEqual([])
    // V8 makes code at run time.
    expect(service.has('MemoryDenyWriteExecute')).toBe(false)
  })
})
