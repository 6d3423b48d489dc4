import { MEASURED, openEvenRing, shortQuestion } from './even-ring.ts'

export type Throughput = {
  readonly setting: typeof MEASURED
  readonly answers: number
  readonly tokensEach: number
  /** Tokens per second of one answer alone, and of all at once, prompts included. */
  readonly one: number
  readonly all: number
  readonly ratio: number
}

const TOKENS = 64

/** What several answers at once bring over one, on a chain in which each stage has its own processor. */
export async function measureThroughput(answers = 4, setting = MEASURED): Promise<Throughput> {
  const one = await tokensPerSecond(1, setting)
  const all = await tokensPerSecond(answers, setting)
  return { setting, answers, tokensEach: TOKENS, one, all, ratio: all / one }
}

/** @throws Error when an answer isn't the unsplit model's, or something is left over */
async function tokensPerSecond(count: number, setting: typeof MEASURED): Promise<number> {
  const sim = await openEvenRing(setting, 1)
  const askers = Array.from({ length: count }, () => sim.openAsker())
  await sim.untilComplete(60_000)
  const from = sim.clock.now()
  const answers = askers.map((asker, number) => asker.ask(shortQuestion(number, TOKENS)))
  await sim.pass(600_000, () => answers.every(({ end }) => end !== null))
  const ms = sim.clock.now() - from
  for (const { question, tokens } of answers) {
    const expected = await sim.unsplit.answer(question)
    if (tokens.join() !== expected.join()) throw new Error('not the text of the unsplit model')
  }
  const left = await sim.close()
  if (left.length > 0) throw new Error(left.join('; '))
  return (count * TOKENS * 1_000) / ms
}
