import { expect, test } from 'vitest'
import { measurePetals, PETALS, STRATEGIES } from './petals.ts'

const SHORT = { ...PETALS, minutes: 0.2, answerTokens: 32 }

test('without failures it makes no difference what would be done about them', async () => {
  const cells = []
  for (const strategy of STRATEGIES) cells.push(await measurePetals(strategy, 0, SHORT))
  const [first] = cells
  expect(first?.answers).toBeGreaterThan(3)
  for (const cell of cells) expect(cell).toEqual({ ...first, strategy: cell.strategy, losses: 0 })
})

test('at one loss in a hundred steps the text stays right, and beginning anew costs most', async () => {
  const refill = await measurePetals('refill', 1e-2, SHORT)
  const restart = await measurePetals('restart', 1e-2, SHORT)
  const repair = await measurePetals('repair', 1e-2, SHORT)
  expect(refill.losses).toBeGreaterThan(0)
  expect(refill.tokensPerSecond).toBeGreaterThan(restart.tokensPerSecond)
  expect(repair.tokensPerSecond).toBeGreaterThan(restart.tokensPerSecond)
})
