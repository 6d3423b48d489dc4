import { MEASURED, openEvenRing, shortQuestion, type RingSetting } from './even-ring.ts'
import type { SimAnswer, SimAsker } from './sim-asker.ts'
import type { SimSwarm } from './sim-swarm.ts'
import type { Question } from './unsplit.ts'

/**
 * What happens when a stage is lost. `repair`: what the product does. `refill`: the same where no stage keeps what it
 * sent, so that all of them compute all tokens again. `restart`: the answer begins anew, from its first token. What the
 * host gives up goes on by a new question with the tokens so far.
 */
export const STRATEGIES = ['repair', 'refill', 'restart'] as const
export type Strategy = (typeof STRATEGIES)[number]

export type PetalsSetting = RingSetting & {
  readonly seed: number
  readonly answerTokens: number
  /** Answers are asked for so long, of the ring's own time. */
  readonly minutes: number
  /** A tab that was closed is opened again after so long. */
  readonly reopenMs: number
}

export const PETALS: PetalsSetting = {
  ...MEASURED,
  copies: 3,
  seed: 1,
  answerTokens: 128,
  minutes: 4,
  reopenMs: 2_000,
}

export type PetalsCell = {
  readonly strategy: Strategy
  /** That a stage is lost at one of its steps. */
  readonly failure: number
  /** Of whole answers, as the unsplit model gives them, up to the end of the last one. */
  readonly tokensPerSecond: number
  readonly answers: number
  readonly losses: number
}

/**
 * One cell of the table in "Distributed Inference and Fine-tuning of Large Language Models Over The Internet"
 * (Borzunov et al. 2023): each step of a stage loses the stage with a probability, and the answers go on.
 * @throws Error when an answer isn't the unsplit model's
 */
export async function measurePetals(
  strategy: Strategy,
  failure: number,
  setting: PetalsSetting = PETALS,
): Promise<PetalsCell> {
  let losses = 0
  let isOver = false
  const ring = strategy === 'refill' ? { ...setting, replayBytes: 0 } : setting
  const sim: SimSwarm = await openEvenRing(ring, setting.seed, (device) => {
    if (isOver || dice() >= failure) return
    losses += 1
    device.kill()
    sim.plan(setting.reopenMs, device.reopen)
  })
  const dice = sim.randoms.stream('failures')
  const asker = sim.openAsker()
  await sim.untilComplete(60_000)
  const from = sim.clock.now()
  const untilMs = from + setting.minutes * 60_000
  let answers = 0
  let doneAt = Infinity
  for (; sim.clock.now() < untilMs; answers += 1) {
    const question = shortQuestion(answers, setting.answerTokens)
    const tokens = await answerWhole(sim, asker, { question, strategy, untilMs })
    if (tokens === null) break
    const expected = await sim.unsplit.answer(question)
    if (tokens.join() !== expected.join()) throw new Error(`${strategy}: not the unsplit text`)
    doneAt = sim.clock.now()
  }
  isOver = true
  await sim.close()
  const tokensPerSecond = (answers * setting.answerTokens * 1_000) / (doneAt - from)
  return { strategy, failure, tokensPerSecond, answers, losses }
}

type Task = { readonly question: Question; readonly strategy: Strategy; readonly untilMs: number }

/** All tokens of an answer, however often it breaks off; null when the time is up. */
async function answerWhole(
  sim: SimSwarm,
  asker: SimAsker,
  { question, strategy, untilMs }: Task,
): Promise<number[] | null> {
  const { prompt, maxTokens, sampling } = question
  const tokens: number[] = []
  const limitMs = (): number => Math.max(0, untilMs - sim.clock.now())
  while (tokens.length < maxTokens) {
    if (strategy === 'restart') tokens.length = 0
    const rest = maxTokens - tokens.length
    const answer = asker.ask({ prompt: [...prompt, ...tokens], maxTokens: rest, sampling })
    const isBroken = strategy === 'restart' ? watchBreak(sim, answer) : () => false
    await sim.pass(limitMs(), () => answer.end !== null || isBroken())
    if (answer.end === null) {
      answer.cancel()
      await sim.pass(limitMs(), () => answer.end !== null)
    }
    tokens.push(...answer.tokens)
    // A ring that isn't whole says so at once; nobody asks again faster than this.
    if (answer.tokens.length === 0) await sim.pass(Math.min(100, limitMs()))
    if (limitMs() === 0) return null
  }
  return tokens
}

/** True once the host no longer lets the answer run on the route on which it began. */
function watchBreak(sim: SimSwarm, { key }: SimAnswer): () => boolean {
  return () => {
    const request = sim.host.state().requests.get(key)
    return request !== undefined && (request.epoch > 1 || request.phase === 'repairing')
  }
}
