import { CrowdError } from '../core/errors.ts'
import { isRecord } from '../core/model/json-fields.ts'
import type { Asked } from './hub-failure.ts'
import type { HubOptions } from './hub-options.ts'
import { readHubText } from './hub-text.ts'

/** What a file's bytes must hash to. `git-blob`: SHA-1 over git's header and the bytes. */
export type FileHash = { readonly kind: 'sha256' | 'git-blob'; readonly hex: string }

/** A file of a repository at a commit. */
export type HubFile = { readonly path: string; readonly bytes: number; readonly hash: FileHash }

/** A repository at one commit, listed. */
export type HubListing = {
  readonly repo: string
  readonly commit: string
  readonly files: readonly HubFile[]
}

const ANSWER_MAX_BYTES = 16 * 1024 * 1024
/** 100,000 files: no model has as many. */
const PAGES_MAX = 100
const FILE_MAX_BYTES = 2 ** 44

/**
 * Pins a revision to its commit and lists the files there, with sizes and hashes.
 * @throws CrowdError hub-unavailable, hub-denied, model-not-found, aborted
 */
export async function listHubFiles(
  options: HubOptions,
  ref: { readonly repo: string; readonly revision: string | null },
  signal: AbortSignal,
): Promise<HubListing> {
  const { repo } = ref
  const asked: Asked = { ...ref, path: null, hasToken: options.token !== null }
  const request = { asked, maxBytes: ANSWER_MAX_BYTES, signal }
  const api = `api/models/${repo}`
  const revision = encodeURIComponent(ref.revision ?? 'main')
  const info = await readHubText(
    options,
    new URL(`${api}/revision/${revision}`, options.hubUrl),
    request,
  )
  const commit = readCommit(parseAnswer(info.text, options), options)
  const files: HubFile[] = []
  let next: URL | null = new URL(`${api}/tree/${commit}?recursive=true`, options.hubUrl)
  for (let page = 0; next !== null; page++) {
    if (page === PAGES_MAX) throw strange(options, `a listing of more than ${PAGES_MAX} pages`)
    const { text, headers } = await readHubText(options, next, request)
    files.push(...readPage(parseAnswer(text, options), options))
    next = nextPage(headers.get('link'), next)
  }
  return { repo, commit, files }
}

/** The address of a file at a pinned commit. */
export function fileAddress({ hubUrl }: HubOptions, listing: HubListing, path: string): URL {
  const encoded = path.split('/').map(encodeURIComponent).join('/')
  return new URL(`${listing.repo}/resolve/${listing.commit}/${encoded}`, hubUrl)
}

function strange({ hubUrl }: HubOptions, what: string): CrowdError {
  return new CrowdError('hub-unavailable', `${hubUrl.host} answered with ${what}; is it a hub?`)
}

function parseAnswer(text: string, options: HubOptions): unknown {
  try {
    return JSON.parse(text) as unknown
  } catch {
    throw strange(options, 'something that is not JSON')
  }
}

function readCommit(json: unknown, options: HubOptions): string {
  const sha = isRecord(json) ? json['sha'] : undefined
  if (typeof sha === 'string' && /^[0-9a-f]{40}$/.test(sha)) return sha
  throw strange(options, 'no commit')
}

function readPage(json: unknown, options: HubOptions): HubFile[] {
  if (!Array.isArray(json)) throw strange(options, 'no list of files')
  // Array.isArray knows nothing of the elements.
  const entries = json as readonly unknown[]
  return entries.flatMap((entry) => {
    if (!isRecord(entry)) throw strange(options, 'a malformed list of files')
    if (entry['type'] !== 'file') return []
    const file = readFile(entry)
    if (file === null) throw strange(options, 'a malformed list of files')
    return isSafePath(file.path) ? [file] : []
  })
}

function readFile(entry: Record<string, unknown>): HubFile | null {
  const { path, oid } = entry
  const lfs = isRecord(entry['lfs']) ? entry['lfs'] : null
  const bytes = lfs?.['size'] ?? entry['size']
  const hash = lfs
    ? readHash('sha256', lfs['oid'] ?? lfs['sha256'], /^(?:sha256:)?([0-9a-f]{64})$/)
    : readHash('git-blob', oid, /^([0-9a-f]{40})$/)
  const isSize =
    typeof bytes === 'number' && Number.isInteger(bytes) && bytes >= 0 && bytes <= FILE_MAX_BYTES
  return typeof path === 'string' && isSize && hash !== null ? { path, bytes, hash } : null
}

function readHash(kind: FileHash['kind'], value: unknown, pattern: RegExp): FileHash | null {
  const hex = typeof value === 'string' ? pattern.exec(value)?.[1] : undefined
  return hex === undefined ? null : { kind, hex }
}

/** It becomes a path on this machine; other files are left alone. */
function isSafePath(path: string): boolean {
  if (path.length === 0 || path.length > 500 || /[\p{Cc}\\]/u.test(path)) return false
  return path.split('/').every((part) => part !== '' && part !== '.' && part !== '..')
}

/** `<https://hub/api/…?cursor=…>; rel="next"` */
function nextPage(link: string | null, from: URL): URL | null {
  const target = /<([^>]+)>\s*;\s*rel="next"/.exec(link ?? '')?.[1]
  return target !== undefined && URL.canParse(target, from.href) ? new URL(target, from) : null
}
