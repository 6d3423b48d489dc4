// @ts-check
// Makes a fresh clone runnable with nothing but Node: installs what the lock file names, builds what is stale.
// Only Node's own modules are imported here, since nothing else may be installed yet.
import { spawn } from 'node:child_process'
import { createHash } from 'node:crypto'
import { existsSync, mkdirSync, readFileSync, readdirSync, statSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import process from 'node:process'
import { fileURLToPath } from 'node:url'
import { withLock } from './setup-lock.mjs'

export const root = fileURLToPath(new URL('../..', import.meta.url))
const installStamp = join(root, 'node_modules', '.crowdinfer-lock')
const buildStamp = join(root, 'dist', '.stamp')
const buildInputs = [
  'sdk',
  'signaling',
  'web',
  'package.json',
  'package-lock.json',
  'tsconfig.json',
  'vite.config.ts',
]

/** A packed install has no sources: everything is built already. */
const isClone = existsSync(join(root, 'vite.config.ts'))

/** Installs the packages of the lock file unless that was done for this very lock file. */
export async function ensureInstalled() {
  if (!isClone || isInstalled()) return
  await locked(async () => {
    if (isInstalled()) return
    say('installing packages (once; a minute or two)')
    await npm(['ci', '--no-audit', '--no-fund', '--loglevel=error'])
    writeFileSync(installStamp, packageLock())
  })
}

function isInstalled() {
  return read(installStamp) === packageLock()
}

function packageLock() {
  return hash(readFileSync(join(root, 'package-lock.json')))
}

/** Builds the Node side and the pages when a source changed since the last build. */
export async function ensureBuilt() {
  if (!isClone || isBuilt()) return
  await locked(async () => {
    if (isBuilt()) return
    say('building (a few seconds, only when something changed)')
    await build()
  })
}

function isBuilt() {
  return read(buildStamp) === fingerprint()
}

/** @param {() => Promise<void>} work */
function locked(work) {
  return withLock(join(root, '.crowdinfer', 'setup.lock'), work, {
    onWait: () => say('waiting for another command that sets this folder up'),
  })
}

/** Builds whatever the state. */
export async function build() {
  const state = fingerprint()
  await node([join('node_modules', 'typescript', 'bin', 'tsc'), '-b', 'sdk', 'signaling'])
  await node([join('node_modules', 'vite', 'bin', 'vite.js'), 'build', '--logLevel', 'warn'])
  mkdirSync(dirname(buildStamp), { recursive: true })
  writeFileSync(buildStamp, state)
}

/** Runs npm itself, portably: as a script under this Node, since npm is a .cmd file on Windows. */
/** @param {string[]} args */
function npm(args) {
  const script = [
    process.env['npm_execpath'] ?? '',
    join(dirname(process.execPath), 'node_modules', 'npm', 'bin', 'npm-cli.js'),
    join(dirname(process.execPath), '..', 'lib', 'node_modules', 'npm', 'bin', 'npm-cli.js'),
  ].find((path) => /npm-cli\.js$/.test(path) && existsSync(path))
  return script === undefined
    ? spawned('npm', args, { shell: process.platform === 'win32' })
    : spawned(process.execPath, [script, ...args])
}

/** Runs a script under this Node in the repository root. @param {string[]} args */
export function node(args) {
  return spawned(process.execPath, args)
}

/**
 * Output of the child goes to stderr, so that a command's own stdout stays clean (JSON).
 * @param {string} command @param {string[]} args @param {{shell?: boolean}} [options] @returns {Promise<void>}
 */
export function spawned(command, args, options = {}) {
  return new Promise((resolve, reject) => {
    const child = spawn(command, args, { cwd: root, stdio: ['ignore', 2, 2], ...options })
    child.on('error', reject)
    child.on('exit', (code) =>
      code === 0
        ? resolve()
        : reject(new Error(`${[command, ...args].join(' ')} ended with ${String(code)}`)),
    )
  })
}

/** @param {string} text */
export function say(text) {
  process.stderr.write(`crowdinfer: ${text}\n`)
}

/**
 * Runs a main function of this folder; a failure is one sentence and exit code 1.
 * @param {() => Promise<void>} main
 */
export async function runMain(main) {
  try {
    checkNode()
    await main()
  } catch (error) {
    say(error instanceof Error ? error.message : String(error))
    process.exitCode = 1
  }
}

/** The engines field of package.json only warns; what fails later fails deep inside a tool. */
function checkNode() {
  const [major = 0, minor = 0] = process.versions.node.split('.').map(Number)
  if (major > 20 || (major === 20 && minor >= 19)) return
  throw new Error(`Node ${process.versions.node} is too old: 20.19 or newer is needed.`)
}

/** Size and time of every source file: cheap, and right as long as editors touch files they change. */
function fingerprint() {
  const lines = buildInputs.flatMap((name) => describe(join(root, name)))
  return hash(lines.sort().join('\n'))
}

/** @param {string} path @returns {string[]} */
function describe(path) {
  const stats = statSync(path)
  if (stats.isDirectory()) return readdirSync(path).flatMap((name) => describe(join(path, name)))
  return [`${path} ${stats.size} ${stats.mtimeMs}`]
}

/** @param {string} path */
function read(path) {
  return existsSync(path) ? readFileSync(path, 'utf8') : ''
}

/** @param {string | Buffer} data */
function hash(data) {
  return createHash('sha256').update(data).digest('hex')
}
