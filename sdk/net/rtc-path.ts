import type { ChannelPath } from './channel.ts'

/** The fields of a statistics report that are read; browsers add many more. */
type Report = {
  readonly id: string
  readonly type: string
  readonly selectedCandidatePairId?: string
  readonly localCandidateId?: string
  readonly remoteCandidateId?: string
  readonly candidateType?: string
  readonly selected?: boolean
  readonly nominated?: boolean
  readonly state?: string
}

/**
 * Whether a connected pair goes straight or over a TURN server: by the candidates that ICE selected. Statistics
 * that can't be read count as direct, since they change nothing but what people are shown.
 */
export async function readPath(connection: RTCPeerConnection): Promise<ChannelPath> {
  try {
    const reports = new Map<string, Report>()
    // The standard types every report as `any`.
    ;(await connection.getStats()).forEach((report: Report) => reports.set(report.id, report))
    return pathOf(reports)
  } catch {
    return 'direct'
  }
}

export function pathOf(reports: ReadonlyMap<string, Report>): ChannelPath {
  const pair = selectedPair([...reports.values()], reports)
  const kinds = [pair?.localCandidateId, pair?.remoteCandidateId].map(
    (id) => reports.get(id ?? '')?.candidateType,
  )
  return kinds.includes('relay') ? 'turn' : 'direct'
}

function selectedPair(
  all: readonly Report[],
  byId: ReadonlyMap<string, Report>,
): Report | undefined {
  const named = all.find((report) => report.type === 'transport')?.selectedCandidatePairId
  if (named !== undefined) return byId.get(named)
  const pairs = all.filter((report) => report.type === 'candidate-pair')
  return (
    pairs.find((pair) => pair.selected === true) ??
    pairs.find((pair) => pair.nominated === true && pair.state === 'succeeded')
  )
}
