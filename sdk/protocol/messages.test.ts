import { describe, expect, test } from 'vitest'
import { CrowdError } from '../core/errors.ts'
import { CHUNK_BYTES, NAME_MAX_CHARS, PROMPT_MAX_TOKENS, WIRE_MESSAGE_MAX } from '../core/limits.ts'
import { parseClientMessage, parseServerMessage } from './parse.ts'

const sampling = {
  temperature: 0.8,
  topK: 40,
  topP: 0.95,
  minP: 0,
  repetitionPenalty: 1.1,
  presencePenalty: 0,
  frequencyPenalty: 0,
  seed: 7,
  logitBias: [[5, -100]],
  topLogprobs: 0,
}
const sampled = { token: 3, logprob: -0.5, top: [{ token: 3, logprob: -0.5 }] }
const range = { start: 0, end: 3 }
const session = { session: 9, epoch: 1 }
const timings = {
  promptTokens: 5,
  tokens: 2,
  firstTokenMs: 10,
  lapMs: 4,
  computeMs: 3,
  hopMs: 0.5,
  hops: 2,
}
const hello = {
  kind: 'hello',
  protocol: 1,
  features: ['relay'],
  role: 'worker',
  peer: 'peer-1',
  token: 'own',
  name: 'Laptop',
  secret: '',
}
const swarm = {
  model: { id: 'm', layerCount: 6, blockCount: 8, bytes: 1_000, contextLength: 512 },
  change: { name: 'other', phase: 'loading', step: '' },
  origins: ['http://192.168.1.5:7080'],
  complete: false,
  missing: [range],
  advice: 'open one more tab',
  plan: { lapMs: null, stages: 0, missing: [range], advice: '', devices: [] },
  peers: [
    {
      peer: 'peer-1',
      name: 'Laptop',
      role: 'worker',
      state: 'ready',
      range,
      provider: 'wasm',
      pledgeBytes: 5,
      doneBytes: 5,
      totalBytes: 5,
      fetchedBytes: 0,
      stepMs: null,
      tokens: 1,
      hidden: false,
      note: '',
    },
  ],
  links: [
    {
      pair: 'p',
      from: 'a',
      to: 'b',
      state: 'open',
      path: 'direct',
      rttMs: 1.5,
      relayedBytes: 0,
    },
  ],
  requests: [
    {
      id: 'r',
      state: 'running',
      stages: ['a'],
      hops: [{ computeMs: 1.5, wireMs: null }],
      promptTokens: 1,
      tokens: 1,
      repairs: 0,
      firstTokenMs: 3,
      predictedLapMs: null,
      predictionMeasured: false,
      lapMs: null,
      computeMs: null,
      hopMs: null,
      error: '',
    },
  ],
  relayedBytes: 0,
  laps: 12,
}

/** One good message of every kind. */
const fromClient = [
  hello,
  {
    kind: 'pledge',
    memoryBytes: 1e9,
    provider: 'webgpu',
    threads: 4,
    revision: 'r1',
    cached: ['a'.repeat(64)],
    hidden: false,
  },
  {
    kind: 'stage-state',
    assignment: 2,
    state: 'failed',
    doneBytes: 1,
    totalBytes: 2,
    fetchedBytes: 1,
    error: { code: 'storage-full', message: 'full' },
  },
  { kind: 'stage-stats', assignment: 2, steps: 3, tokens: 3, stepMs: 1.5 },
  { kind: 'signal', pair: 'p', attempt: 1, data: { try: 1, signal: { type: 'offer' } } },
  { kind: 'link-state', pair: 'p', attempt: 1, state: 'open', path: 'relay', rttMs: null },
  {
    kind: 'ask',
    request: 'r',
    model: 'm',
    prompt: [1, 2],
    maxTokens: 10,
    stopIds: [2],
    sampling,
  },
  { kind: 'cancel', request: 'r' },
  { kind: 'session-ready', ...session, cached: 5, kept: 5 },
  { kind: 'beat', computing: true, sessions: [{ ...session, position: 7 }] },
  { kind: 'session-token', ...session, position: 5, sampled },
  { kind: 'session-end', ...session, reason: 'stop' },
  { kind: 'session-timings', ...session, timings },
  { kind: 'session-failed', ...session, error: { code: 'non-finite', message: 'NaN' } },
  { kind: 'session-step', ...session, computeMs: 1.5 },
  { kind: 'leave' },
]
const fromServer = [
  {
    kind: 'welcome',
    protocol: 1,
    features: [],
    peer: 'peer-1',
    name: 'Laptop',
    model: 'm',
    revision: 'r1',
    manifestPath: '/models/m/manifest.json',
  },
  { kind: 'refused', error: { code: 'wrong-secret', message: 'no' } },
  { kind: 'assign', assignment: 1, model: 'm', revision: 'r', range: null, reason: 'spare' },
  {
    kind: 'pair-open',
    pair: 'p',
    peer: 'b',
    initiator: true,
    attempt: 1,
    iceServers: [{ urls: 'turn:host', username: 'u', credential: 'c' }],
  },
  { kind: 'pair-close', pair: 'p', reason: 'left' },
  { kind: 'signal', pair: 'p', attempt: 1, data: null },
  {
    kind: 'session-open',
    ...session,
    stage: 0,
    stages: [{ peer: 'a', range }],
    nextPair: null,
    sampling,
    history: [],
    answered: 0,
    valid: 0,
    promptLength: 3,
    maxTokens: 10,
    stopIds: [],
  },
  { kind: 'session-start', ...session, from: 0, forward: 0, prompt: [1, 2, 3] },
  { kind: 'session-close', ...session, retain: false },
  { kind: 'ask-accepted', request: 'r', session: 9, stages: [{ peer: 'a', name: 'A', range }] },
  { kind: 'ask-token', request: 'r', position: 3, sampled },
  { kind: 'ask-end', request: 'r', reason: 'stop', timings },
  { kind: 'swarm', swarm },
  { kind: 'model', model: 'm2', revision: 'r2', manifestPath: '/models/m2/manifest.json' },
]

describe('good messages', () => {
  for (const message of fromClient) {
    test(`SG12 takes ${message.kind} from a client`, () => {
      expect(parseClientMessage(message)).toEqual({ ok: true, message })
    })
  }
  for (const message of fromServer) {
    test(`SG12 takes ${message.kind} from the server`, () => {
      expect(parseServerMessage(message)).toEqual({ ok: true, message })
    })
  }

  test('SG12 PC1 takes what builds that share pieces say besides, and refuses it where it is wrong', () => {
    const wrongBytes = { code: 'piece-corrupt', message: 'another hash' }
    const said: [kind: string, more: object, wrong: object][] = [
      ['stage-state', { peerBytes: 1 }, { peerBytes: -1 }],
      ['link-state', { error: wrongBytes }, { error: 'no' }],
    ]
    for (const [kind, more, wrong] of said) {
      const message = { ...fromClient.find((one) => one.kind === kind), ...more }
      expect(parseClientMessage(message)).toEqual({ ok: true, message })
      expect(parseClientMessage({ ...message, ...wrong }).ok).toBe(false)
    }
    const told: [kind: string, more: object, wrong: object][] = [
      ['assign', { sources: 3 }, { sources: -1 }],
      ['pair-open', { purpose: 'pieces' }, { purpose: 'fun' }],
    ]
    for (const [kind, more, wrong] of told) {
      const message = { ...fromServer.find((one) => one.kind === kind), ...more }
      expect(parseServerMessage(message)).toEqual({ ok: true, message })
      expect(parseServerMessage({ ...message, ...wrong }).ok).toBe(false)
    }
  })

  test('SG12 drops unknown fields, so that old peers survive new ones', () => {
    expect(parseClientMessage({ ...hello, color: 'red' })).toEqual({ ok: true, message: hello })
  })
})

describe('errors', () => {
  test('SG13 an error of any length fits both schemas: its sender cuts it', () => {
    const error = new CrowdError('stage-failed', `ORT: ${'é'.repeat(10_000)}`).toWire()
    expect(error.message).toHaveLength(WIRE_MESSAGE_MAX)
    expect(error.message).toMatch(/^ORT: é+…$/)
    const failed = { kind: 'session-failed', ...session, error }
    const refused = { kind: 'refused', error }
    expect(parseClientMessage(failed)).toEqual({ ok: true, message: failed })
    expect(parseServerMessage(refused)).toEqual({ ok: true, message: refused })
    const whole = 'x'.repeat(WIRE_MESSAGE_MAX)
    expect(new CrowdError('internal', whole).toWire().message).toBe(whole)
  })
})

describe('bad messages', () => {
  const unknown = [undefined, null, 7, 'hello', [], {}, { kind: 5 }, { kind: 'from the future' }]
  for (const input of unknown) {
    test(`SG12 refuses ${JSON.stringify(input)} by name, without throwing`, () => {
      for (const parse of [parseClientMessage, parseServerMessage]) {
        expect(parse(input)).toMatchObject({ ok: false, error: { code: 'bad-message' } })
      }
    })
  }

  test('SG12 keeps the directions apart', () => {
    expect(parseClientMessage(fromServer[0]).ok).toBe(false)
    expect(parseServerMessage(hello).ok).toBe(false)
  })

  for (const message of [...fromClient, ...fromServer]) {
    for (const field of Object.keys(message).filter(
      (name) => !['kind', 'error', 'data'].includes(name),
    )) {
      test(`SG12 refuses ${message.kind} without or with a wrong ${field}`, () => {
        const parse = fromClient.includes(message as (typeof fromClient)[number])
          ? parseClientMessage
          : parseServerMessage
        const without = Object.fromEntries(
          Object.entries(message).filter(([name]) => name !== field),
        )
        expect(parse(without).ok).toBe(false)
        expect(parse({ ...message, [field]: { wrong: true } }).ok).toBe(false)
        expect(parse({ ...message, [field]: Number.NaN }).ok).toBe(false)
      })
    }
  }

  const tooMuch: readonly [string, object][] = [
    ['a long name', { ...hello, name: 'x'.repeat(NAME_MAX_CHARS + 1) }],
    ['an id with spaces', { ...hello, peer: 'a b' }],
    ['an id with markup', { ...hello, peer: '<b>' }],
    ['a huge protocol', { ...hello, protocol: 1e9 }],
    ['many features', { ...hello, features: new Array(41).fill('x') }],
    ['a large signal', { kind: 'signal', pair: 'p', attempt: 1, data: 'x'.repeat(CHUNK_BYTES) }],
    ['half an attempt', { kind: 'signal', pair: 'p', attempt: 1.5, data: 1 }],
    ['a negative attempt', { kind: 'signal', pair: 'p', attempt: -1, data: 1 }],
    ['a long prompt', { ...fromClient[6], prompt: new Array(PROMPT_MAX_TOKENS + 1).fill(1) }],
    ['an empty prompt', { ...fromClient[6], prompt: [] }],
    ['a negative temperature', { ...fromClient[6], sampling: { ...sampling, temperature: -1 } }],
    [
      'an infinite temperature',
      { ...fromClient[6], sampling: { ...sampling, temperature: Number.POSITIVE_INFINITY } },
    ],
    [
      'a long error',
      {
        ...fromClient.find(({ kind }) => kind === 'session-failed'),
        error: { code: 'x', message: 'x'.repeat(WIRE_MESSAGE_MAX + 1) },
      },
    ],
    ['a hash in capitals', { ...fromClient[1], cached: ['A'.repeat(64)] }],
  ]
  for (const [what, input] of tooMuch) {
    test(`SG13 refuses ${what}`, () => {
      const result = parseClientMessage(input)
      expect(result).toMatchObject({ ok: false, error: { code: 'bad-message' } })
    })
  }

  test('SG13 refuses an empty range and names the field', () => {
    const assign = { ...fromServer[2], range: { start: 3, end: 3 } }
    expect(parseServerMessage(assign)).toMatchObject({
      ok: false,
      error: { message: 'message of kind "assign": range: start must be below end' },
    })
  })
})
