import { execFile, type ExecFileException } from 'node:child_process'
import { existsSync } from 'node:fs'
import { mkdir, mkdtemp, readdir, readFile, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { delimiter, dirname, join, resolve } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { startChild } from '../support/child.ts'
import { startHostProcess, type HostProcess } from '../support/host-process.ts'

const root = resolve(import.meta.dirname, '../..')

let folder = ''
let host: HostProcess

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'crowdinfer-package-'))
  host = await startHostProcess({ dataDir: folder, model: 'crowdtalk-0.3m', stages: 1 })
})

afterEach(async () => {
  await host.kill()
  await rm(folder, { recursive: true, force: true })
})

type Ran = { readonly ok: boolean; readonly output: string }

function run(program: string, args: readonly string[], limitMs: number): Promise<Ran> {
  return new Promise((done) => {
    execFile(
      program,
      [...args],
      { cwd: root, timeout: limitMs, shell: process.platform === 'win32' },
      (error: ExecFileException | null, stdout, stderr) =>
        done({ ok: error === null, output: `${stdout}${stderr}` }),
    )
  })
}

/** Packs what is built; the build itself belongs to `npm test`. Returns the tarball. */
async function pack(): Promise<string> {
  const packed = await run(
    'npm',
    ['pack', '--ignore-scripts', '--pack-destination', folder],
    120_000,
  )
  expect(packed.output, 'npm pack').toMatch(/crowdinfer-.*\.tgz/)
  const [tarball = ''] = (await readdir(folder)).filter((name) => name.endsWith('.tgz'))
  return join(folder, tarball)
}

/**
 * Installs the tarball into an empty folder. Where no registry answers, by hand: the package's own files from the
 * tarball, and for each dependency that it declares a link to the one that is here.
 */
async function install(tarball: string, into: string): Promise<'npm' | 'by hand'> {
  await mkdir(into)
  await writeFile(join(into, 'package.json'), '{}')
  const quiet = ['--no-audit', '--no-fund', '--ignore-scripts']
  const network = ['--prefer-offline', '--fetch-retries=0', '--fetch-timeout=20000']
  const flags = ['install', tarball, '--prefix', into, ...quiet, ...network]
  const installed = await run('npm', flags, 240_000)
  if (installed.ok) return 'npm'
  // Anything but a missing network is a fault of the package.
  expect(installed.output).toMatch(
    /ENOTFOUND|EAI_AGAIN|ECONNREFUSED|ETIMEDOUT|ENOTCACHED|network|^$/,
  )
  await rm(join(into, 'node_modules'), { recursive: true, force: true })
  await installByHand(tarball, join(into, 'node_modules'))
  return 'by hand'
}

async function installByHand(tarball: string, modules: string): Promise<void> {
  const target = join(modules, 'crowdinfer')
  await mkdir(target, { recursive: true })
  const unpacked = await run('tar', ['-xzf', tarball, '-C', target, '--strip-components=1'], 60_000)
  expect(unpacked).toMatchObject({ ok: true })
  // Our own file, as it was packed.
  const { bin, dependencies } = JSON.parse(
    await readFile(join(target, 'package.json'), 'utf8'),
  ) as { bin: Record<string, string>; dependencies: Record<string, string> }
  for (const name of Object.keys(dependencies)) {
    const link = join(modules, name)
    await mkdir(dirname(link), { recursive: true })
    await symlink(join(root, 'node_modules', name), link, 'junction')
  }
  await mkdir(join(modules, '.bin'))
  for (const [name, path] of Object.entries(bin))
    await symlink(join(target, path), join(modules, '.bin', name))
}

test(
  'the packed package, installed in an empty folder, joins a ring by `crowd-worker`',
  { timeout: 420_000 },
  async () => {
    const home = join(folder, 'installed')
    const how = await install(await pack(), home)
    const script = join(
      home,
      'node_modules',
      'crowdinfer',
      'tools',
      'bootstrap',
      'crowd-worker.mjs',
    )
    expect(existsSync(join(home, 'node_modules', '.bin', 'crowd-worker')), how).toBe(true)
    // Nothing of the clone: neither its sources nor its development packages.
    for (const name of ['signaling', 'web', 'test', 'vite.config.ts'])
      expect(existsSync(join(home, 'node_modules', 'crowdinfer', name)), name).toBe(false)

    const data = ['--data', join(folder, 'worker'), '--memory', '64MB']
    const cpu = ['--provider', 'cpu', '--threads', '1', '--once', '--json']
    const worker = startChild([script, host.joinUrl, ...data, ...cpu], {
      PATH: `${dirname(process.execPath)}${delimiter}${process.env['PATH'] ?? ''}`,
    })
    try {
      await expect
        .poll(() => worker.output(), { timeout: 60_000, interval: 50 })
        .toContain('"event":"serving"')
      await host.complete()
      // Missing packages would have been told here: the relay stands in for WebRTC.
      expect(worker.output()).not.toContain('no WebRTC')
      worker.process.kill('SIGTERM')
      expect(await worker.exited).toBe(0)
    } finally {
      await worker.kill()
    }
  },
)
