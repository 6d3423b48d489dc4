import { expect, test } from 'vitest'
import { pathOf, readPath } from './rtc-path.ts'

type Report = Parameters<typeof pathOf>[0] extends ReadonlyMap<string, infer R> ? R : never

const candidates: Report[] = [
  { id: 'host', type: 'local-candidate', candidateType: 'host' },
  { id: 'turn', type: 'local-candidate', candidateType: 'relay' },
  { id: 'far', type: 'remote-candidate', candidateType: 'prflx' },
  { id: 'far-turn', type: 'remote-candidate', candidateType: 'relay' },
]

function pathWith(...reports: Report[]) {
  return pathOf(new Map([...candidates, ...reports].map((report) => [report.id, report])))
}

function pair(id: string, local: string, remote: string, more: Partial<Report> = {}): Report {
  return { id, type: 'candidate-pair', localCandidateId: local, remoteCandidateId: remote, ...more }
}

test('PA9 tells the path by the selected candidates of either end', () => {
  const transport = { id: 't', type: 'transport', selectedCandidatePairId: 'p' }
  expect(pathWith(transport, pair('p', 'host', 'far'))).toBe('direct')
  expect(pathWith(transport, pair('p', 'turn', 'far'))).toBe('turn')
  expect(pathWith(transport, pair('p', 'host', 'far-turn'))).toBe('turn')
  expect(pathWith(transport, pair('other', 'turn', 'far'), pair('p', 'host', 'far'))).toBe('direct')
})

test('PA9 reads browsers that mark the pair itself', () => {
  expect(pathWith(pair('p', 'turn', 'far', { selected: true }))).toBe('turn')
  expect(pathWith(pair('p', 'turn', 'far', { nominated: true, state: 'succeeded' }))).toBe('turn')
  expect(pathWith(pair('p', 'turn', 'far', { nominated: true, state: 'failed' }))).toBe('direct')
})

test('PA9 counts statistics that cannot be read as direct', async () => {
  const broken = { getStats: () => Promise.reject(new Error('closed')) }
  // Only getStats() is used of it.
  expect(await readPath(broken as unknown as RTCPeerConnection)).toBe('direct')
})
