import { CrowdError } from '../core/errors.ts'
import { fileAddress, type HubFile, type HubListing } from './hub-files.ts'
import type { HubFailure } from './hub-failure.ts'
import type { HubOptions } from './hub-options.ts'
import { requestOnce, type ByteRange, type HubAnswer } from './hub-request.ts'
import { failureOf, thrownFailure } from './hub-retry.ts'

/** `part`: the bytes asked for. `whole`: the server does no ranges and sends the file from its start. */
export type RangeAnswer =
  | { readonly kind: 'part' | 'whole'; readonly answer: HubAnswer }
  | { readonly kind: 'failed'; readonly failure: HubFailure }

export type RangeReader = {
  /** One try. What is wrong with the answer is a value: the next try may do better. */
  read(range: ByteRange, signal: AbortSignal): Promise<RangeAnswer>
}

/**
 * Reads ranges of one file at a pinned commit. The address at the end of the redirects is kept in memory and used
 * again, since only requests to the hub count for its limits; once it's refused the hub is asked anew.
 */
export function createRangeReader(
  options: HubOptions,
  listing: HubListing,
  file: HubFile,
): RangeReader {
  const start = fileAddress(options, listing, file.path)
  const asked = {
    repo: listing.repo,
    revision: listing.commit,
    path: file.path,
    hasToken: options.token !== null,
  }
  let signed: URL | null = null

  async function tryOnce(range: ByteRange, signal: AbortSignal): Promise<RangeAnswer> {
    const from = signed
    const answer = await requestOnce(options, from ?? start, { range, signal })
    if (from === null) checkFirst(answer, listing, file)
    const failure = await failureOf(answer, asked, [200, 206, 416])
    if (failure !== null) {
      if (signed === from) signed = null
      // The hub's own shortcut may end as well.
      const isSpent = from !== null && failure.next === 'give-up'
      return { kind: 'failed', failure: isSpent ? { ...failure, next: 'moved' } : failure }
    }
    const wrong = problemOf(answer, range, file)
    if (wrong !== null) {
      await answer.cancel()
      throw new CrowdError('download-corrupt', `${file.path}: ${answer.address.host} ${wrong}`)
    }
    if (answer.address.href !== start.href) signed = answer.address
    return { kind: answer.status === 206 ? 'part' : 'whole', answer }
  }

  return {
    async read(range, signal) {
      try {
        return await tryOnce(range, signal)
      } catch (thrown) {
        return { kind: 'failed', failure: thrownFailure(thrown) }
      }
    },
  }
}

/** What the hub says beside the redirect must be what it listed. */
function checkFirst({ firstHeaders }: HubAnswer, listing: HubListing, file: HubFile): void {
  const commit = firstHeaders.get('x-repo-commit')
  const size = firstHeaders.get('x-linked-size')
  const hash = firstHeaders.get('x-linked-etag')?.replace(/^(W\/)?"|"$/g, '') ?? null
  const isOther =
    (commit !== null && commit !== listing.commit) ||
    (size !== null && Number(size) !== file.bytes) ||
    (hash !== null && hash !== file.hash.hex)
  if (!isOther) return
  const message = `${file.path}: the hub offers another file than it listed`
  throw new CrowdError('download-corrupt', message)
}

/** Why an answer must not be used, or null. */
function problemOf(answer: HubAnswer, range: ByteRange, file: HubFile): string | null {
  const { status, headers } = answer
  if (status === 416) {
    const said = headers.get('content-range') ?? 'no size'
    return `says that the file ends earlier (${said.slice(0, 60)}, expected ${file.bytes} bytes)`
  }
  if (/^text\/html\b/.test(headers.get('content-type') ?? '')) return 'answered with a web page'
  if (status === 206) return rangeProblem(headers.get('content-range') ?? '', range, file)
  const length = headers.get('content-length')
  // Where the answer is encoded the length is not the file's.
  if (length === null || headers.has('content-encoding') || Number(length) === file.bytes)
    return null
  return `gave ${length} bytes, expected ${file.bytes}`
}

function rangeProblem(said: string, range: ByteRange, file: HubFile): string | null {
  const [, start, end, total] = /^bytes (\d+)-(\d+)\/(\d+|\*)$/.exec(said) ?? []
  const fits = Number(start) === range.start && Number(end) === range.end - 1
  const isWhole = total === '*' || Number(total) === file.bytes
  return fits && isWhole ? null : `gave the range "${said.slice(0, 60)}" of ${file.bytes} bytes`
}
