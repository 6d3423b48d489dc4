import * as v from 'valibot'
import { CrowdError } from '../sdk/core/errors.ts'
import { dataDirectory } from '../sdk/import/data-directory.node.ts'
import type { IceServers } from './messages.ts'

/** What the host was told to do; made once, from flags and environment. */
export type Config = {
  /** A built-in model's name or a directory. */
  readonly model: string
  /** 0 = any free port. */
  readonly port: number
  readonly host: string
  readonly tls:
    | { readonly kind: 'off' }
    /** Own certificate, made on first use and kept in the data folder. */
    | { readonly kind: 'own' }
    | { readonly kind: 'files'; readonly cert: string; readonly key: string }
  /** An open pool: no secret. */
  readonly public: boolean
  readonly dataDir: string
  readonly open: boolean
  readonly stages: number | 'auto'
  readonly iceServers: IceServers
}

export const DEFAULT_MODEL = 'crowdtalk-2.6m'
export const DEFAULT_PORT = 7080

/** Flags as commander gives them; every one may be missing. */
export type Flags = {
  readonly model?: string
  readonly port?: string
  readonly host?: string
  readonly https?: boolean
  readonly cert?: string
  readonly key?: string
  readonly public?: boolean
  readonly data?: string
  readonly open?: boolean
  readonly stages?: string
  readonly ice?: string
}

type Environment = Readonly<Record<string, string | undefined>>

/**
 * Flags first, then the environment (`CROWDINFER_PORT` for `--port`, and so on), then the defaults.
 * @throws CrowdError bad-option, naming the flag and what it takes
 *
 * @example parseConfig({ port: '8080' }, process.env).port // 8080
 */
export function parseConfig(flags: Flags, environment: Environment = {}): Config {
  const value = (flag: string | undefined, name: string): string | undefined =>
    nonEmpty(flag) ?? nonEmpty(environment[`CROWDINFER_${name}`])
  const isOn = (flag: boolean | undefined, name: string): boolean =>
    flag ?? parseSwitch(`CROWDINFER_${name}`, environment[`CROWDINFER_${name}`])
  return {
    model: value(flags.model, 'MODEL') ?? DEFAULT_MODEL,
    port: parsePort(value(flags.port, 'PORT')),
    host: value(flags.host, 'HOST') ?? '0.0.0.0',
    tls: parseTls({
      own: isOn(flags.https, 'HTTPS'),
      cert: value(flags.cert, 'CERT'),
      key: value(flags.key, 'KEY'),
    }),
    public: isOn(flags.public, 'PUBLIC'),
    dataDir: dataDirectory(flags.data, environment),
    open: isOn(flags.open, 'OPEN'),
    stages: parseStages(value(flags.stages, 'STAGES')),
    iceServers: parseIce(value(flags.ice, 'ICE')),
  }
}

function nonEmpty(text: string | undefined): string | undefined {
  return text === undefined || text.trim() === '' ? undefined : text.trim()
}

function parseSwitch(name: string, text: string | undefined): boolean {
  const word = (text ?? '').trim().toLowerCase()
  if (['', '0', 'false', 'no', 'off'].includes(word)) return false
  if (['1', 'true', 'yes', 'on'].includes(word)) return true
  throw new CrowdError('bad-option', `${name}: "${word}" is neither 1 nor 0`)
}

function parsePort(text: string | undefined): number {
  if (text === undefined) return DEFAULT_PORT
  const port = Number(text)
  if (/^\d+$/.test(text) && port <= 65_535) return port
  throw new CrowdError('bad-option', `--port: "${text}" is not a port from 0 to 65535`)
}

function parseStages(text: string | undefined): number | 'auto' {
  if (text === undefined || text === 'auto') return 'auto'
  const stages = Number(text)
  if (/^\d+$/.test(text) && stages >= 1 && stages <= 1_000) return stages
  throw new CrowdError('bad-option', `--stages: "${text}" is neither a number from 1 nor "auto"`)
}

function parseTls(input: {
  readonly own: boolean
  readonly cert: string | undefined
  readonly key: string | undefined
}): Config['tls'] {
  const { own, cert, key } = input
  if (cert !== undefined && key !== undefined) return { kind: 'files', cert, key }
  if (cert !== undefined) throw new CrowdError('bad-option', '--cert needs --key beside it')
  if (key !== undefined) throw new CrowdError('bad-option', '--key needs --cert beside it')
  return own ? { kind: 'own' } : { kind: 'off' }
}

const iceSchema = v.pipe(
  v.array(
    v.object({
      urls: v.pipe(v.string(), v.regex(/^(stun|stuns|turn|turns):/), v.maxLength(300)),
      username: v.exactOptional(v.pipe(v.string(), v.maxLength(200))),
      credential: v.exactOptional(v.pipe(v.string(), v.maxLength(200))),
    }),
  ),
  v.maxLength(8),
)

/** JSON as WebRTC takes it, or one url with the login in it: `turn:name:password@example.org:3478`. */
function parseIce(text: string | undefined): IceServers {
  if (text === undefined) return []
  const input = text.startsWith('[') ? parseJson(text) : [oneServer(text)]
  const result = v.safeParse(iceSchema, input)
  if (result.success) return result.output
  const { message } = result.issues[0]
  throw new CrowdError('bad-option', `--ice: not a list of STUN or TURN servers: ${message}`)
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch (cause) {
    throw new CrowdError('bad-option', '--ice: not valid JSON', { cause })
  }
}

function oneServer(text: string): Record<string, string> {
  const login = /^(turns?):([^:@]+):([^@]+)@(.+)$/.exec(text)
  if (!login) return { urls: text }
  const [, scheme = '', username = '', credential = '', address = ''] = login
  return { urls: `${scheme}:${address}`, username, credential }
}
