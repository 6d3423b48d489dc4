import { describe, expect, it } from 'vitest'
import { GREEDY, type SamplingParams } from './params.ts'
import { randomAt } from './random.ts'
import { argmax, createSampler, type SampleInput } from './sampler.ts'

const SAMPLE: SamplingParams = { ...GREEDY, temperature: 1, seed: 11 }

function input(logits: readonly number[], params: Partial<SamplingParams> = {}): SampleInput {
  return {
    logits: Float32Array.from(logits),
    params: { ...SAMPLE, ...params },
    history: new Int32Array(0),
    promptLength: 0,
    position: 0,
  }
}

/** How often each token is drawn over positions 0..draws. */
function shares(
  logits: readonly number[],
  params: Partial<SamplingParams>,
  draws = 20_000,
): number[] {
  const sampler = createSampler(logits.length)
  const counts = new Array<number>(logits.length).fill(0)
  const base = input(logits, params)
  for (let position = 0; position < draws; position++) {
    const { token } = sampler.sample({ ...base, position })
    counts[token] = (counts[token] ?? 0) + 1
  }
  return counts.map((count) => count / draws)
}

const logs = (...probabilities: number[]): number[] => probabilities.map((p) => Math.log(p))

/** What Hugging Face's warpers leave, written the slow way: [probability or 0] per token. */
function expectedShares(logits: readonly number[], params: SamplingParams): number[] {
  let scores = logits.map((logit) => logit / params.temperature)
  const softmax = (values: readonly number[]): number[] => {
    const top = Math.max(...values)
    const weights = values.map((value) => Math.exp(value - top))
    const total = weights.reduce((a, b) => a + b, 0)
    return weights.map((weight) => weight / total)
  }
  if (params.topK > 0) {
    const kth = [...scores].sort((a, b) => b - a)[Math.min(params.topK, scores.length) - 1] ?? 0
    scores = scores.map((score) => (score < kth ? -Infinity : score))
  }
  if (params.topP < 1) {
    const shares = softmax(scores)
    const order = scores
      .map((_, i) => i)
      .sort((a, b) => (scores[b] ?? 0) - (scores[a] ?? 0) || a - b)
    let sum = 0
    for (const token of order) {
      if (sum >= params.topP) scores[token] = -Infinity
      sum += shares[token] ?? 0
    }
  }
  const shares = softmax(scores)
  const top = Math.max(...shares)
  scores = scores.map((score, i) => ((shares[i] ?? 0) < params.minP * top ? -Infinity : score))
  return softmax(scores)
}

describe('greedy', () => {
  it('takes the first of equal maxima', () => {
    expect(createSampler(5).sample(input([1, 3, 2, 3, 0], { temperature: 0 })).token).toBe(1)
    expect(argmax(Float32Array.of(-2, -1, -1))).toBe(1)
  })

  it('reports the logprob over the raw logits', () => {
    const logits = logs(0.5, 0.25, 0.125, 0.125)
    const result = createSampler(4).sample(
      input(logits, { temperature: 0, logitBias: [[2, 9]], topLogprobs: 3 }),
    )
    expect(result.token).toBe(2)
    expect(result.logprob).toBeCloseTo(Math.log(0.125), 5)
    expect(result.top.map(({ token }) => token)).toEqual([0, 1, 2])
    expect(result.top[0]?.logprob).toBeCloseTo(Math.log(0.5), 5)
  })

  it('refuses logits that are not finite', () => {
    for (const bad of [NaN, Infinity]) {
      const sampler = createSampler(3)
      expect(() => sampler.sample(input([1, bad, 2], { temperature: 0 }))).toThrow(/finite/)
      expect(() => sampler.sample(input([bad, bad, bad]))).toThrow(/finite/)
    }
  })

  it('does not change the logits, nor carry anything from call to call', () => {
    const sampler = createSampler(4)
    const first = { ...input([1, 2, 3, 4], { temperature: 0, presencePenalty: 9, topK: 2 }) }
    const penalised = { ...first, history: Int32Array.of(3, 3), promptLength: 0 }
    expect(sampler.sample(penalised).token).toBe(2)
    expect([...first.logits]).toEqual([1, 2, 3, 4])
    expect(sampler.sample(first).token).toBe(3)
  })
})

describe('draws', () => {
  const logits = logs(0.05, 0.4, 0.3, 0.15, 0.1)

  it.each<Partial<SamplingParams>>([
    {},
    { temperature: 0.5 },
    { temperature: 2 },
    { topK: 2 },
    { topK: 99 },
    { topP: 0.65 },
    { topP: 0.001 },
    { minP: 0.3 },
    { topK: 4, topP: 0.8 },
    { topK: 4, topP: 0.95, minP: 0.4, temperature: 1.5 },
  ])('follow the distribution under %j', (params) => {
    const expected = expectedShares(logits, { ...SAMPLE, ...params })
    shares(logits, params).forEach((share, token) => {
      const wanted = expected[token] ?? 0
      if (wanted === 0) expect(share).toBe(0)
      else expect(Math.abs(share - wanted)).toBeLessThan(0.018)
    })
  })

  it('keep ties with the k-th token', () => {
    const kept = shares([2, 1, 1, 1, 0], { topK: 2 }, 2_000)
    expect(kept.map((share) => share > 0)).toEqual([true, true, true, true, false])
  })

  it('depend on seed and position only', () => {
    const one = createSampler(5)
    const other = createSampler(5)
    for (let position = 40; position >= 0; position--) one.sample({ ...input(logits), position })
    for (const position of [3, 17, 40]) {
      const again = { ...input(logits), position }
      expect(one.sample(again)).toEqual(other.sample(again))
    }
    const seeds = new Set<number>()
    for (let seed = 0; seed < 40; seed++) {
      seeds.add(createSampler(5).sample(input(logits, { seed })).token)
    }
    expect(seeds.size).toBeGreaterThan(2)
  })

  it('never leave the filtered set (random logits and settings)', () => {
    for (let round = 0; round < 300; round++) {
      const size = 2 + Math.floor(randomAt(1, round) * 40)
      // Steps of a quarter make ties likely.
      const values = Array.from(
        { length: size },
        (_, i) => Math.round(randomAt(round, i + 9) * 24) / 4 - 3,
      )
      const params: SamplingParams = {
        ...SAMPLE,
        temperature: 0.2 + 2 * randomAt(2, round),
        topK: Math.floor(randomAt(3, round) * size),
        topP: randomAt(4, round) < 0.3 ? 1 : randomAt(5, round),
        minP: randomAt(6, round) < 0.5 ? 0 : randomAt(7, round) * 0.5,
        seed: round,
      }
      const allowed = expectedShares(values, params)
      const sampler = createSampler(size)
      for (let position = 0; position < 20; position++) {
        const { token } = sampler.sample({ ...input(values, params), position })
        expect(allowed[token], `round ${round}`).toBeGreaterThan(0)
      }
    }
  })
})

describe('penalties', () => {
  const history = Int32Array.of(0, 1, 2, 2)

  it('repetition counts prompt and answer once, and works on both signs', () => {
    const base = input([2, -1, 1.5, 0.9, -2], { temperature: 0, repetitionPenalty: 2 })
    const sample = createSampler(5).sample({ ...base, history, promptLength: 2 })
    expect(sample.token).toBe(0) // 1, -2, 0.75, 0.9, -2
    const harder = input([2, -1, 1.5, 1.1, -2], { temperature: 0, repetitionPenalty: 2 })
    expect(createSampler(5).sample({ ...harder, history, promptLength: 2 }).token).toBe(3)
  })

  it('presence and frequency count the answer only', () => {
    const at = (params: Partial<SamplingParams>): number =>
      createSampler(4).sample({
        ...input([1, 1.5, 3, 0], { temperature: 0, ...params }),
        history,
        promptLength: 2,
      }).token
    expect(at({ presencePenalty: 1 })).toBe(2)
    expect(at({ presencePenalty: 1.6 })).toBe(1)
    expect(at({ frequencyPenalty: 0.7 })).toBe(2)
    expect(at({ frequencyPenalty: 0.8 })).toBe(1)
    expect(at({ presencePenalty: -2, frequencyPenalty: 2 })).toBe(1)
  })

  it('logit bias moves a token, ids outside the vocabulary are ignored', () => {
    const biased = input([1, 2, 3], {
      temperature: 0,
      logitBias: [
        [0, 5],
        [99, 100],
        [-1, 100],
      ],
    })
    expect(createSampler(3).sample(biased).token).toBe(0)
  })

  it('ignore history outside the vocabulary', () => {
    const odd = { ...input([1, 2], { temperature: 0, presencePenalty: 1, repetitionPenalty: 2 }) }
    const result = createSampler(2).sample({
      ...odd,
      history: Int32Array.of(-1, 7),
      promptLength: 0,
    })
    expect(result.token).toBe(1)
  })
})
