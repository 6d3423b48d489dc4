import { readFile } from 'node:fs/promises'
import { CrowdError } from '../core/errors.ts'
import { SYSTEM_TIMING } from '../storage/download.ts'
import type { HubNotice, HubOptions } from './hub-options.ts'

export const DEFAULT_HUB = 'https://huggingface.co/'

export type HubSettings = {
  /** `--hub`; else HF_ENDPOINT, else the public hub. */
  readonly hub?: string | undefined
  /** `--token-file`; else HF_TOKEN, else none. */
  readonly tokenFile?: string | undefined
  readonly environment: Readonly<Record<string, string | undefined>>
  readonly notice?: HubNotice
}

/**
 * Which hub, and who asks.
 * @throws CrowdError bad-option (never with the token in it)
 */
export async function readHubSettings(settings: HubSettings): Promise<HubOptions> {
  const { environment, notice } = settings
  const hubUrl = parseHubUrl(
    given(settings.hub) ?? given(environment['HF_ENDPOINT']) ?? DEFAULT_HUB,
  )
  const token = await readToken(settings)
  const isSafe = hubUrl.protocol === 'https:' || isLoopback(hubUrl)
  if (token !== null && !isSafe) {
    notice?.(`the token is not sent: ${hubUrl.origin} has no https`)
  }
  return {
    hubUrl,
    token: isSafe ? token : null,
    fetch: (input, init) => fetch(input, init),
    timing: SYSTEM_TIMING,
    ...(notice ? { notice } : {}),
  }
}

function given(text: string | undefined): string | undefined {
  return text === undefined || text.trim() === '' ? undefined : text.trim()
}

function parseHubUrl(text: string): URL {
  const url = URL.canParse(text) ? new URL(text.endsWith('/') ? text : `${text}/`) : null
  const isPlain = url !== null && url.username === '' && url.password === ''
  if (isPlain && ['http:', 'https:'].includes(url.protocol)) return url
  throw new CrowdError('bad-option', '--hub or HF_ENDPOINT: not an http or https address')
}

function isLoopback({ hostname }: URL): boolean {
  return ['localhost', '[::1]'].includes(hostname) || /^127\./.test(hostname)
}

async function readToken({ tokenFile, environment }: HubSettings): Promise<string | null> {
  const path = given(tokenFile)
  if (path === undefined) return checkToken(given(environment['HF_TOKEN']), 'HF_TOKEN')
  const text = await readFile(path, 'utf8').catch((cause: unknown) => {
    throw new CrowdError('bad-option', `--token-file: can't read ${path}`, { cause })
  })
  return checkToken(given(text) ?? '', `--token-file: ${path}`)
}

/** It becomes a header, and a broken one would be shown by whoever refuses it. */
function checkToken(token: string | undefined, where: string): string | null {
  if (token === undefined) return null
  if (/^[\x21-\x7e]{1,500}$/.test(token)) return token
  throw new CrowdError('bad-option', `${where} does not hold a token`)
}
