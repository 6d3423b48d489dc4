import type { RequestState, SwarmState } from '../../sdk/core/swarm/state.ts'

/** Which devices served an answer, and where its time went, for headers and comments. */
export type RouteReport = {
  /** `tab-1;blocks=0-3, tab-2;blocks=4-7`: names percent-encoded, the last block included. */
  readonly route: string
  /** As the header Server-Timing has it, ms; empty before anything was timed. */
  readonly timing: string
}

export function routeReport(state: SwarmState, request: RequestState): RouteReport {
  return {
    route: request.stages
      .map(({ peer, range }) => {
        // Half a surrogate pair, which a name may have, can't be encoded.
        const name = (state.peers.get(peer)?.name ?? '').replace(/\p{Surrogate}/gu, '\uFFFD')
        return `${encodeURIComponent(name)};blocks=${range.start}-${range.end - 1}`
      })
      .join(', '),
    timing: timingEntries(request)
      .map(([name, ms]) => `${name};dur=${ms.toFixed(2)}`)
      .join(', '),
  }
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
