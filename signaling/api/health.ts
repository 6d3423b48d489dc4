import { CrowdError, toCrowdError, type ErrorCode } from '../../sdk/core/errors.ts'
import type { Tokenizer } from '../../sdk/index.node.ts'
import { takeSeat, type SeatDeps } from './seat.ts'

/** A good answer is as good for this long, ms; a bad one is looked at again sooner. */
const HEALTHY_MS = 5_000
const ILL_MS = 1_000
/** One token may wait for a long answer's turn, but not for ever. */
const RUN_MS = 10_000

export type HealthReport = {
  readonly ok: boolean
  /** Why not; '' when ok. */
  readonly reason: string
}

/** Whether the ring answers, from a real run of one token. Looked at when asked, once at a time. */
export type Health = { check(): Promise<HealthReport> }

export type HealthDeps = Omit<SeatDeps, 'manifest'> & {
  served(): SeatDeps['manifest']
  /** Monotonic, ms; the swarm's own clock. */
  now(): number
}

/** While a model is changed for another one, answers of the former may still run. */
const BUSY: ReadonlySet<ErrorCode> = new Set(['timeout', 'too-many-requests', 'model-changed'])

/** No text is needed to see whether a token comes. */
const NO_TEXT: Tokenizer = { encode: () => [], decode: () => '', encodeChat: () => [] }

export function createHealth(deps: HealthDeps): Health {
  let known: { readonly report: HealthReport; readonly until: number } | null = null
  let running: Promise<HealthReport> | null = null

  async function look(): Promise<HealthReport> {
    const reason = await whyIll(deps)
    const report = { ok: reason === '', reason }
    known = { report, until: deps.now() + (report.ok ? HEALTHY_MS : ILL_MS) }
    running = null
    return report
  }

  return {
    check() {
      if (known !== null && deps.now() < known.until) return Promise.resolve(known.report)
      running ??= look()
      return running
    },
  }
}

async function whyIll(deps: HealthDeps): Promise<string> {
  const limit = new AbortController()
  const cancel = deps.later(RUN_MS, () => limit.abort())
  try {
    await runOneToken(deps, limit.signal)
    if (!limit.signal.aborted) return ''
    throw new CrowdError('timeout', `no token within ${RUN_MS / 1_000} s`)
  } catch (thrown) {
    // A full ring that gives others their tokens is well.
    const { code, message, hint } = toCrowdError(thrown)
    const isBusy = BUSY.has(code)
    if (isBusy && givesTokens(deps)) return ''
    // Anybody may ask for the health, and most messages name a device.
    return `${code}: ${code === 'ring-incomplete' ? message : hint}`
  } finally {
    cancel()
  }
}

function givesTokens({ service, now }: HealthDeps): boolean {
  return [...service.state().requests.values()].some(
    ({ phase, answer, progressAt }) =>
      phase === 'running' && answer !== null && now() - progressAt < RUN_MS,
  )
}

async function runOneToken(deps: HealthDeps, signal: AbortSignal): Promise<void> {
  const seat = takeSeat({ ...deps, manifest: deps.served() }, NO_TEXT, 'health')
  try {
    for await (const event of seat.client.generate({ promptIds: [0], maxTokens: 1 }, signal))
      if (event.kind === 'delta') return
  } finally {
    seat.close()
  }
}
