import { expect, test } from 'vitest'
import type { RequestState } from '../../sdk/core/swarm/request-state.ts'
import type { SwarmState } from '../../sdk/core/swarm/state.ts'
import { routeReport } from './route-report.ts'

/** The route of devices with these names, each with two blocks. */
function routeOf(names: readonly string[]): string {
  const peers = new Map(names.map((name, index) => [`p${index}`, { name }]))
  const stages = names.map((_, index) => ({
    peer: `p${index}`,
    range: { start: 2 * index, end: 2 * index + 2 },
  }))
  const request = { stages, timings: null, firstTokenMs: null, stageMs: [], wireMs: [] }
  // Casts: the report looks at nothing else of either.
  const route = routeReport(
    { peers } as unknown as SwarmState,
    request as unknown as RequestState,
  ).route
  // Throws for what no header may hold.
  expect(new Headers({ route }).get('route')).toBe(route)
  return route
}

test('names are encoded, and cut between characters', () => {
  expect(routeOf(['tab 1', '', 'x'.repeat(16)])).toBe(
    `tab%201;blocks=0-1, ;blocks=2-3, ${'x'.repeat(16)};blocks=4-5`,
  )
  expect(routeOf(['x'.repeat(17)])).toBe(`${'x'.repeat(15)}%E2%80%A6;blocks=0-1`)
  expect(decodeURIComponent(routeOf(['字'.repeat(60)]))).toBe(`${'字'.repeat(15)}…;blocks=0-1`)
  expect(decodeURIComponent(routeOf(['😀'.repeat(30)]))).toBe(`${'😀'.repeat(15)}…;blocks=0-1`)
  expect(decodeURIComponent(routeOf(['\ud800']))).toBe('\ufffd;blocks=0-1')
})

test('however many devices there are, the header stays small and says that it was cut', () => {
  const route = routeOf(Array.from({ length: 60 }, () => '😀'.repeat(30)))
  expect(route.length).toBeLessThan(2_048)
  expect(route).toMatch(/;blocks=\d+-\d+, %E2%80%A6$/)
  expect(route.split(', ').length).toBeGreaterThan(8)
})
