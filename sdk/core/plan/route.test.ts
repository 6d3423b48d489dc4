import { expect, test } from 'vitest'
import { seededRandom } from '../../../test/support/host-fixtures.ts'
import type { PeerId } from '../ids.ts'
import { cheapestRoute, type HopCost, type RouteStage } from './route.ts'

function stage(name: string, start: number, end: number, stepMs = 10): RouteStage {
  return { peer: name as PeerId, range: { start, end }, stepMs }
}

const free: HopCost = () => 0
const names = (stages: readonly RouteStage[] | undefined): string =>
  (stages ?? []).map((one) => one.peer).join(' ')

test('stages that do not meet give no route', () => {
  expect(cheapestRoute(8, [stage('a', 0, 4), stage('b', 5, 8)], free)).toBeNull()
  expect(cheapestRoute(8, [stage('a', 0, 5), stage('b', 4, 8)], free)).toBeNull()
  expect(cheapestRoute(8, [], free)).toBeNull()
})

test('the faster replica is taken and the lap is the sum of steps and hops', () => {
  const stages = [stage('a', 0, 4), stage('b', 4, 8, 30), stage('c', 4, 8, 20)]
  const route = cheapestRoute(8, stages, () => 3)
  expect(names(route?.stages)).toBe('a c')
  expect(route?.lapMs).toBe(10 + 20 + 3 + 3)
})

test('a slow path outweighs a fast device', () => {
  const stages = [stage('a', 0, 4), stage('b', 4, 8, 30), stage('c', 4, 8, 20)]
  const hop: HopCost = (from, to) => (from === 'c' || to === 'c' ? 40 : 1)
  expect(names(cheapestRoute(8, stages, hop)?.stages)).toBe('a b')
})

test('the hop back to the first stage counts', () => {
  const stages = [stage('a', 0, 4), stage('a2', 0, 4, 11), stage('b', 4, 8)]
  const hop: HopCost = (from, to) => (from === 'b' && to === 'a' ? 50 : 1)
  expect(names(cheapestRoute(8, stages, hop)?.stages)).toBe('a2 b')
})

test('one device that holds everything has no hops', () => {
  const stages = [stage('a', 0, 4, 1), stage('b', 4, 8, 1), stage('whole', 0, 8, 4)]
  expect(cheapestRoute(8, stages, () => 2)?.stages).toHaveLength(1)
})

test('no cheaper chain exists, in 300 random swarms', () => {
  for (let seed = 0; seed < 300; seed++) {
    const random = seededRandom(seed)
    const stages: RouteStage[] = []
    for (let index = 0; index < 9; index++) {
      const start = Math.floor(random() * 4)
      const end = start + 1 + Math.floor(random() * (4 - start))
      stages.push(stage(`p${index}`, start, end, Math.ceil(random() * 30)))
    }
    const costs = new Map<string, number>()
    const hop: HopCost = (from, to) => {
      const key = `${from} ${to}`
      const cost = costs.get(key) ?? Math.ceil(random() * 20)
      costs.set(key, cost)
      return cost
    }
    const best = bruteForce(4, stages, hop)
    expect(cheapestRoute(4, stages, hop)?.lapMs ?? null, `seed ${seed}`).toBe(best)
  }
})

function bruteForce(blocks: number, stages: readonly RouteStage[], hop: HopCost): number | null {
  const laps: number[] = []
  const walk = (chain: readonly RouteStage[], at: number, ms: number): void => {
    const first = chain[0]
    const last = chain.at(-1)
    if (at === blocks && first && last)
      laps.push(ms + (first === last ? 0 : hop(last.peer, first.peer)))
    for (const next of stages) {
      if (next.range.start !== at || chain.includes(next)) continue
      const cost = next.stepMs + (last ? hop(last.peer, next.peer) : 0)
      walk([...chain, next], next.range.end, ms + cost)
    }
  }
  walk([], 0, 0)
  return laps.length === 0 ? null : Math.min(...laps)
}
