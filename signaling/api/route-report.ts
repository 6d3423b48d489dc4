import type { RequestState } from '../../sdk/core/swarm/request-state.ts'
import type { SwarmState } from '../../sdk/core/swarm/state.ts'

/** Devices choose their names, and clients and proxies refuse long headers: many all of 8 KiB. */
const NAME_MAX = 16
const ROUTE_MAX_BYTES = 2_000

/** Which devices served an answer, and where its time went, for headers and comments. */
export type RouteReport = {
  /**
   * `tab-1;blocks=0-3, tab-2;blocks=4-7`: names cut and percent-encoded, the last block included; `…`, encoded
   * too, for what is too much.
   */
  readonly route: string
  /** As the header Server-Timing has it, ms; empty before anything was timed. */
  readonly timing: string
}

export function routeReport(state: SwarmState, request: RequestState): RouteReport {
  return {
    route: joinWithin(
      request.stages.map(
        ({ peer, range }) =>
          `${encodeName(state.peers.get(peer)?.name ?? '')};blocks=${range.start}-${range.end - 1}`,
      ),
    ),
    timing: timingEntries(request)
      .map(([name, ms]) => `${name};dur=${ms.toFixed(2)}`)
      .join(', '),
  }
}

/** A name of 16 characters has 192 bytes at most, encoded. */
function encodeName(name: string): string {
  // Half a surrogate pair, which a name may have, can't be encoded.
  const characters = Array.from(name.replace(/\p{Surrogate}/gu, '\uFFFD'))
  const cut =
    characters.length > NAME_MAX ? [...characters.slice(0, NAME_MAX - 1), '…'] : characters
  return encodeURIComponent(cut.join(''))
}

function joinWithin(entries: readonly string[]): string {
  let joined = ''
  for (const entry of entries) {
    const longer = joined === '' ? entry : `${joined}, ${entry}`
    if (longer.length > ROUTE_MAX_BYTES) return `${joined}, ${encodeURIComponent('…')}`
    joined = longer
  }
  return joined
}

/** Compute of each stage and the wire behind it, besides what the last stage knows of whole laps. */
function timingEntries(request: RequestState): (readonly [string, number])[] {
  const { timings, firstTokenMs, stageMs, wireMs } = request
  const known: (readonly [string, number | null | undefined])[] = [
    ['first-token', firstTokenMs],
    ['lap', timings?.lapMs],
    ['compute', timings?.computeMs],
    ['hop', timings?.hopMs],
    ...stageMs.map((ms, index) => [`stage-${index + 1}`, ms] as const),
    ...wireMs.map((ms, index) => [`wire-${index + 1}`, ms] as const),
  ]
  return known.flatMap(([name, ms]) =>
    ms === null || ms === undefined ? [] : [[name, ms] as const],
  )
}
