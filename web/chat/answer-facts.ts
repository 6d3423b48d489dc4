import { describeRange } from '../../sdk/core/model/block-range.ts'
import { counted, formatMs, formatPercent } from '../ui/format.ts'
import type { Turn } from './turn.ts'

/** One honest line about an answer; parts that were not measured are left out. */
export function answerFacts(turn: Turn): string[] {
  const facts: string[] = []
  if (turn.tokens > 0) facts.push(counted(turn.tokens, 'token'))
  const first = firstTokenMs(turn)
  if (first !== null) facts.push(`first after ${formatMs(first)}`)
  const speed = tokensPerSecond(turn)
  if (speed !== null) facts.push(`${speed.toFixed(speed < 10 ? 1 : 0)} tokens/s`)
  if (turn.timings !== null && turn.timings.lapMs > 0) {
    const { lapMs, computeMs, tokens, hops } = turn.timings
    const share = Math.min(computeMs / lapMs, 1)
    facts.push(`${counted(tokens, 'lap')} of ${formatMs(lapMs)} over ${counted(hops, 'hop')}`)
    facts.push(`${formatPercent(share)} compute, ${formatPercent(1 - share)} wire and waiting`)
  }
  return facts
}

/** How an answer ended, where that isn't plain from the text. */
export function endingOf(turn: Turn): string {
  if (turn.phase === 'stopped') return 'Stopped.'
  if (turn.reason === 'length')
    return 'Cut off: the token limit or the end of the context was reached.'
  if (turn.phase === 'done' && turn.answer === '') return 'The model ended without any text.'
  return ''
}

/** What an answer waits for that lost its host; empty where it runs or is over. */
export function waitingFor({ interruption }: Turn): string {
  if (interruption === null) return ''
  return interruption === 'lost'
    ? 'The connection to the host is lost. The answer goes on when it is back.'
    : 'The host is back. The answer goes on as soon as the ring takes it up.'
}

/** Who computed an answer and with which layers, in the order of the chain. */
export function computedBy(turn: Turn): { readonly name: string; readonly holds: string }[] {
  return turn.stages.map(({ name, peer, range }) => ({
    name: name === '' ? peer.slice(0, 8) : name,
    holds: describeRange(range, turn.model.layerCount),
  }))
}

function firstTokenMs(turn: Turn): number | null {
  if (turn.timings !== null && turn.timings.firstTokenMs > 0) return turn.timings.firstTokenMs
  return turn.firstAtMs === null ? null : turn.firstAtMs - turn.askedAtMs
}

/** Of the laps after the first token, so that a long prompt doesn't make the ring look slow. */
function tokensPerSecond(turn: Turn): number | null {
  if (turn.timings !== null && turn.timings.lapMs > 0) return 1_000 / turn.timings.lapMs
  if (turn.firstAtMs === null || turn.lastAtMs === null || turn.tokens < 2) return null
  const spentMs = turn.lastAtMs - turn.firstAtMs
  return spentMs > 0 ? ((turn.tokens - 1) * 1_000) / spentMs : null
}
