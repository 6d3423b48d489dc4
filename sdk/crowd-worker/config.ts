import { CrowdError } from '../core/errors.ts'
import { NAME_MAX_CHARS } from '../core/limits.ts'
import type { NodeOrtOptions } from '../node-worker.node.ts'
import { readJoinLink, type JoinLink } from './join-url.ts'

/** What the worker was told to do; made once, from flags and environment. */
export type WorkerConfig = {
  readonly link: JoinLink
  readonly name: string
  readonly pledgeBytes: number
  readonly ort: NodeOrtOptions
  readonly dataDir: string
  readonly once: boolean
  readonly json: boolean
}

/** Flags as commander gives them; every one may be missing. */
export type WorkerFlags = {
  readonly join?: string
  readonly name?: string
  readonly memory?: string
  readonly threads?: string
  readonly provider?: string
  readonly requireGpu?: boolean
  readonly data?: string
  readonly once?: boolean
  readonly json?: boolean
}

export type Environment = Readonly<Record<string, string | undefined>>

/** What the defaults depend on. */
export type Machine = {
  readonly hostname: string
  /** What this process may use at most. */
  readonly memoryBytes: number
  dataDirectory(given: string | undefined, environment: Environment): string
}

const PROVIDERS = ['auto', 'cuda', 'webgpu', 'cpu'] as const
const ON: readonly string[] = ['1', 'true', 'yes', 'on']
const OFF: readonly string[] = ['', '0', 'false', 'no', 'off']
const THREADS_MAX = 256
/** Less holds no layer of any model. */
const MEMORY_MIN_BYTES = 1e6
/** The rest is for the system, for caches and for what the runtime takes besides. */
const MEMORY_SHARE = 0.5

/**
 * Flags first, then the environment (`CROWDINFER_JOIN` for `--join`, and so on), then the defaults.
 * @throws CrowdError bad-option, naming the flag and what it takes
 */
export function parseWorkerConfig(
  given: { readonly flags: WorkerFlags; readonly link: string | undefined },
  environment: Environment,
  machine: Machine,
): WorkerConfig {
  const { flags } = given
  const value = (flag: string | undefined, name: string): string | undefined =>
    nonEmpty(flag) ?? nonEmpty(environment[`CROWDINFER_${name}`])
  const isOn = (flag: boolean | undefined, name: string): boolean =>
    flag ?? parseSwitch(`CROWDINFER_${name}`, environment[`CROWDINFER_${name}`])
  const threads = parseThreads(value(flags.threads, 'THREADS'))
  const prefer = parseProvider(value(flags.provider, 'PROVIDER'))
  const requireGpu = isOn(flags.requireGpu, 'REQUIRE_GPU')
  if (requireGpu && prefer === 'cpu')
    throw new CrowdError('bad-option', '--require-gpu and --provider cpu exclude each other')
  return {
    link: parseLink(
      nonEmpty(given.link),
      nonEmpty(flags.join),
      nonEmpty(environment['CROWDINFER_JOIN']),
    ),
    name: (value(flags.name, 'NAME') ?? machine.hostname).slice(0, NAME_MAX_CHARS),
    pledgeBytes:
      parseMemory(value(flags.memory, 'MEMORY')) ?? Math.floor(machine.memoryBytes * MEMORY_SHARE),
    ort: { prefer, requireGpu, ...(threads === undefined ? {} : { threads }) },
    dataDir: machine.dataDirectory(flags.data, environment),
    once: isOn(flags.once, 'ONCE'),
    json: isOn(flags.json, 'JSON'),
  }
}

/** Whether failures are told as JSON, also those of the command line itself. Never throws. */
export function wantsJson(args: readonly string[], environment: Environment): boolean {
  return args.includes('--json') || ON.includes(switchWord(environment['CROWDINFER_JSON']))
}

function parseLink(
  argument: string | undefined,
  flag: string | undefined,
  variable: string | undefined,
): JoinLink {
  if (argument !== undefined && flag !== undefined && argument !== flag)
    throw new CrowdError('bad-option', 'two join links were given: one as --join, one without')
  const text = argument ?? flag ?? variable
  if (text === undefined)
    throw new CrowdError(
      'bad-option',
      'which host? Give the join link that it prints: crowd-worker "http://…/join#s=…"',
    )
  return readJoinLink(text)
}

function nonEmpty(text: string | undefined): string | undefined {
  return text === undefined || text.trim() === '' ? undefined : text.trim()
}

function parseSwitch(name: string, text: string | undefined): boolean {
  const word = switchWord(text)
  if (ON.includes(word)) return true
  if (OFF.includes(word)) return false
  throw new CrowdError('bad-option', `${name}: "${word}" is neither 1 nor 0`)
}

function switchWord(text = ''): string {
  return text.trim().toLowerCase()
}

function parseThreads(text: string | undefined): number | undefined {
  if (text === undefined) return undefined
  const threads = Number(text)
  if (/^\d+$/.test(text) && threads >= 1 && threads <= THREADS_MAX) return threads
  throw new CrowdError('bad-option', `--threads: "${text}" is no number from 1 to ${THREADS_MAX}`)
}

function parseProvider(text = 'auto'): (typeof PROVIDERS)[number] {
  const found = PROVIDERS.find((name) => name === text)
  if (found !== undefined) return found
  throw new CrowdError('bad-option', `--provider: "${text}" is none of ${PROVIDERS.join(', ')}`)
}

const UNITS: Readonly<Record<string, number>> = {
  mb: 1e6,
  gb: 1e9,
  tb: 1e12,
  mib: 2 ** 20,
  gib: 2 ** 30,
  tib: 2 ** 40,
}

function parseMemory(text: string | undefined): number | undefined {
  if (text === undefined) return undefined
  const [, number = '', unit = ''] = /^(\d+(?:\.\d+)?)\s*([a-z]+)$/i.exec(text) ?? []
  const bytes = Math.floor(Number(number) * (UNITS[unit.toLowerCase()] ?? Number.NaN))
  if (number !== '' && bytes >= MEMORY_MIN_BYTES && Number.isSafeInteger(bytes)) return bytes
  throw new CrowdError('bad-option', `--memory: "${text}" is no size; say e.g. 2GB or 512MB`)
}
