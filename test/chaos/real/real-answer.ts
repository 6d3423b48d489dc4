import { performance } from 'node:perf_hooks'
import { toCrowdError } from '../../../sdk/core/errors.ts'
import { REPAIR_MS } from '../../../sdk/core/limits.ts'
import type { RequestState } from '../../../sdk/core/swarm/request-state.ts'
import type { Asker } from '../../support/asker.ts'
import type { Outcome } from '../../sim/questions.ts'
import type { RealCase } from './real-question.ts'
import type { RealRing } from './real-ring.ts'

/** An answer on its way, as the host and the asker see it. */
export type RealAnswer = {
  /** As the host has it now; undefined before it was asked. */
  request(): RequestState | undefined
  /** When each token came to the host, ms. */
  readonly tokenAt: readonly number[]
  /** From now on: something happened to it. */
  arm(): void
  /** When the host first treated it otherwise, ms, and the tokens that it had then. */
  reaction(): { readonly at: number; readonly tokens: number } | null
  readonly ended: Promise<{ readonly outcome: Outcome; readonly ending: string }>
}

/** Silence after which an asker is left hanging. */
const HANG_MS = REPAIR_MS + 15_000
const LOOK_MS = 250

export function askRing(ring: RealRing, asker: Asker, wanted: RealCase): RealAnswer {
  const tokenAt: number[] = []
  let key: string | null = null
  let armed: number | null = null
  let reaction: { at: number; tokens: number } | null = null
  const known = new Set(ring.state().requests.keys())
  const request = (): RequestState | undefined =>
    key === null ? undefined : ring.state().requests.get(key)

  const unhear = ring.onEvent((event, { requests }) => {
    if (event.kind === 'asked')
      key ??= [...requests.keys()].find((each) => !known.has(each)) ?? null
    if (event.kind === 'token-chosen' && event.key === key) tokenAt.push(performance.now())
    const now = requests.get(key ?? '')
    if (now !== undefined && armed !== null && isOther(now, armed))
      reaction ??= { at: performance.now(), tokens: tokenAt.length }
  })

  async function follow(): Promise<{ outcome: Outcome; ending: string }> {
    const hang = new AbortController()
    const askedAt = performance.now()
    const timer = setInterval(() => {
      if (performance.now() - (tokenAt.at(-1) ?? askedAt) > HANG_MS) hang.abort()
    }, LOOK_MS)
    let text = ''
    try {
      for await (const event of asker.client.generate(wanted.request, hang.signal)) {
        if (event.kind === 'delta') text += event.text
        if (event.kind === 'end') return { outcome: ofIds(event.ids, wanted), ending: event.reason }
      }
      return { outcome: 'wrong', ending: 'no end' }
    } catch (thrown) {
      const { code, message } = toCrowdError(thrown)
      const ending = `${code}: ${message}`
      if (!wanted.text.startsWith(text) || code === 'internal') return { outcome: 'wrong', ending }
      return { outcome: hang.signal.aborted ? 'hang' : 'honest', ending }
    } finally {
      clearInterval(timer)
      unhear()
    }
  }

  return {
    request,
    tokenAt,
    arm() {
      armed = request()?.epoch ?? 0
    },
    reaction: () => reaction,
    ended: follow(),
  }
}

/** Whether the host treats it otherwise than when it had this epoch. */
function isOther({ phase, epoch }: RequestState, armed: number): boolean {
  return (phase !== 'running' && phase !== 'done') || epoch !== armed
}

function ofIds(ids: readonly number[], { expected }: RealCase): Outcome {
  return JSON.stringify(ids) === JSON.stringify(expected) ? 'identical' : 'wrong'
}
