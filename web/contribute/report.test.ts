import { describe, expect, test } from 'vitest'
import { CrowdError } from '../../sdk/core/errors.ts'
import { PROTOCOL } from '../../sdk/protocol/version.ts'
import { aWorkerSnapshot, peerId } from '../fixtures/snapshots.ts'
import { deviceLabel, type Device } from './device.ts'
import { addEvents, EVENTS_KEPT, snapshotEvents, type LoggedEvent } from './event-log.ts'
import { buildReport } from './report.ts'

const device: Device = {
  label: 'Linux tab',
  userAgent: 'Mozilla/5.0 (X11; Linux x86_64)',
  secureContext: true,
  crossOriginIsolated: false,
  cores: 8,
  memoryGb: 8,
  webGpu: false,
}

const serving = aWorkerSnapshot({
  phase: 'serving',
  range: { start: 3, end: 5 },
  reason: 'weakest span',
  runner: { provider: 'wasm', threads: 1, notes: ['WebGPU: no adapter'] },
  links: [{ peer: peerId('p2'), path: 'relay', state: 'open', rttMs: 14 }],
})

describe('a report', () => {
  test('has what a helper asks for first', () => {
    const error = new CrowdError('out-of-memory', 'allocation failed')
    const report = buildReport({
      build: '/assets/join-abc.js',
      device,
      pledgeMb: 64,
      snapshot: serving,
      error,
      events: [{ atMs: 1_500, text: 'phase serving' }],
    })
    for (const part of [
      '/assets/join-abc.js',
      `protocol: ${PROTOCOL}`,
      'isolated: false',
      'pledge: 64 MB',
      'error: out-of-memory: allocation failed',
      'provider: wasm, threads: 1',
      'WebGPU: no adapter',
      'layers 3–4',
      'relayed by the host',
      '1.5 s  phase serving',
    ]) {
      expect(report).toContain(part)
    }
  })

  test('can be made before there is a worker', () => {
    const report = buildReport({
      build: 'b',
      device,
      pledgeMb: 1,
      snapshot: null,
      error: null,
      events: [],
    })
    expect(report).toContain('worker: not started')
  })
})

describe('the log of events', () => {
  test('says what changed and nothing twice', () => {
    expect(snapshotEvents(null, serving)).toEqual([
      'phase serving',
      'assigned layers 3–4 of crowdtalk-2.6m: weakest span',
      'link to p2 open, path relayed by the host',
    ])
    expect(snapshotEvents(serving, { ...serving, laps: 99, tokens: 99 })).toEqual([])
    const error = new CrowdError('stage-failed', 'device lost')
    expect(snapshotEvents(serving, { ...serving, phase: 'failed', error })).toEqual([
      'phase failed',
      'error stage-failed: device lost',
    ])
  })

  test('keeps the newest ones only', () => {
    let log: readonly LoggedEvent[] = []
    for (let at = 0; at < 200; at++) log = addEvents(log, [`event ${at}`], at)
    expect(log).toHaveLength(EVENTS_KEPT)
    expect(log.at(-1)?.text).toBe('event 199')
  })
})

test('a device without a name is called after its system', () => {
  expect(deviceLabel('Mozilla/5.0 (Linux; Android 14; Pixel)')).toBe('Android tab')
  expect(deviceLabel('Mozilla/5.0 (Macintosh; Intel Mac OS X)')).toBe('Mac tab')
  expect(deviceLabel('something else')).toBe('Browser tab')
})
