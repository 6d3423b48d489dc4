import { beforeEach, expect, test } from 'vitest'
import { CrowdError } from '../core/errors.ts'
import type { PieceHash } from '../core/ids.ts'
import { PIECE_FLOOR_MS, PIECE_HELP_MS, PIECE_LINK_WAIT_MS } from '../core/limits.ts'
import type { Piece } from '../core/model/manifest.ts'
import { createManualTimers, type ManualTimers } from '../../test/support/manual-timers.ts'
import { makePiece } from '../../test/support/piece-pair.ts'
import { fetchAll } from './fetch-all.ts'
import type { PeerAnswer, PeerPieces, PeerSource } from './peer-pieces.ts'

const SIZE = 1_000
const COUNT = 8

let timers: ManualTimers
let pieces: Piece[]
let bytesOf: Map<PieceHash, Uint8Array>
let kept: Piece[]
/** Answers that a test gives by hand. */
type Asked = { piece: Piece; resolve(answer: PeerAnswer): void; onBytes(count: number): void }

beforeEach(async () => {
  timers = createManualTimers()
  const made = await Promise.all(
    Array.from({ length: COUNT }, (_, seed) => makePiece(seed, SIZE + seed)),
  )
  pieces = made.map(({ piece }) => piece)
  bytesOf = new Map(made.map(({ piece, bytes }) => [piece.sha256, bytes]))
  kept = []
})

const right = (piece: Piece): PeerAnswer => ({
  kind: 'bytes',
  bytes: bytesOf.get(piece.sha256) ?? new Uint8Array(0),
})

type Swarm = PeerPieces & {
  awaited: boolean
  sources: TestSource[]
  change(): void
}
type TestSource = PeerSource & {
  paused: boolean
  gone: boolean
  readonly asked: Asked[]
  readonly rejected: string[]
  /** Answers everything at once from now on. */
  answerAll(answer?: (piece: Piece) => PeerAnswer): void
}

function makeSwarm(): Swarm {
  const handlers = new Set<() => void>()
  const swarm: Swarm = {
    awaited: false,
    sources: [],
    list: () => swarm.sources.filter(({ gone }) => !gone),
    onChange(handler) {
      handlers.add(handler)
      return () => handlers.delete(handler)
    },
    change: () => handlers.forEach((handler) => handler()),
  }
  return swarm
}

function addSource(swarm: Swarm, name: string, has: readonly Piece[] = pieces): TestSource {
  const stored = new Set(has.map(({ sha256 }) => sha256))
  let open = 0
  let answerOf: ((piece: Piece) => PeerAnswer) | null = null
  const source: TestSource = {
    name,
    paused: false,
    get free() {
      return !source.paused && open < 2
    },
    gone: false,
    asked: [],
    rejected: [],
    has: (hash) => !source.gone && stored.has(hash),
    fetch(piece, { onBytes }) {
      open += 1
      return new Promise<PeerAnswer>((resolve) => {
        const answer = answerOf?.(piece)
        source.asked.push({ piece, resolve, onBytes })
        if (answer === undefined) return
        if (answer.kind === 'bytes') onBytes(answer.bytes.length)
        resolve(answer)
      }).finally(() => {
        open -= 1
      })
    },
    reject(reason) {
      source.rejected.push(reason)
      source.gone = true
      swarm.change()
    },
    answerAll(answer = right) {
      answerOf = answer
    },
  }
  swarm.sources.push(source)
  return source
}

type Run = {
  readonly hostAsked: Piece[]
  readonly done: Promise<void>
  peerBytes(): number
  readonly stop: AbortController
}

type Host = (piece: Piece) => Promise<Uint8Array>
const goodHost: Host = (piece) => Promise.resolve(bytesOf.get(piece.sha256) ?? new Uint8Array(0))
const deadHost: Host = () => Promise.reject(new CrowdError('piece-unavailable', 'host: no answer'))

function start(peers: PeerPieces | null, host: Host = goodHost, wanted = pieces): Run {
  const stop = new AbortController()
  const hostAsked: Piece[] = []
  let peerBytes = 0
  const run: Run = {
    hostAsked,
    stop,
    peerBytes: () => peerBytes,
    done: fetchAll(wanted, {
      peers,
      fromHost(piece) {
        hostAsked.push(piece)
        return host(piece)
      },
      keep(piece) {
        kept.push(piece)
        return Promise.resolve()
      },
      onPeerBytes: (count) => {
        peerBytes += count
      },
      signal: stop.signal,
      now: timers.now,
      wait: (ms, signal) =>
        new Promise((resolve, reject) => {
          const abort = (): void => {
            cancel()
            reject(new Error('aborted'))
          }
          const cancel = timers.after(ms, () => {
            signal.removeEventListener('abort', abort)
            resolve()
          })
          signal.addEventListener('abort', abort)
        }),
    }),
  }
  run.done.catch(() => undefined)
  return run
}

/** Hashing takes real turns of the event loop. */
async function turns(): Promise<void> {
  for (let turn = 0; turn < 20; turn += 1) await new Promise((resolve) => setImmediate(resolve))
}

const names = (list: readonly Piece[]): string[] => list.map(({ sha256 }) => sha256).sort()

test('without peers the host gives everything, three at a time', async () => {
  const answers: (() => void)[] = []
  const run = start(
    null,
    (piece) =>
      new Promise((resolve) => {
        answers.push(() => void goodHost(piece).then(resolve))
      }),
  )
  expect(run.hostAsked).toHaveLength(3)
  for (let index = 0; index < COUNT; index += 1) {
    answers[index]?.()
    await turns()
  }
  await run.done
  expect(names(kept)).toEqual(names(pieces))
})

test('PC10 peers that have everything give everything, also when the host is down', async () => {
  const swarm = makeSwarm()
  const [a, b] = [addSource(swarm, 'a'), addSource(swarm, 'b')]
  a.answerAll()
  b.answerAll()
  const run = start(swarm, deadHost)
  await run.done
  expect(names(kept)).toEqual(names(pieces))
  expect(run.hostAsked).toEqual([])
  expect(Math.min(a.asked.length, b.asked.length)).toBeGreaterThan(0)
  expect(run.peerBytes()).toBe(pieces.reduce((sum, { bytes }) => sum + bytes, 0))
})

test('several sources are asked at once, each piece of one of them', () => {
  const swarm = makeSwarm()
  const sources = ['a', 'b', 'c'].map((name) => addSource(swarm, name))
  start(swarm)
  expect(sources.map(({ asked }) => asked.length)).toEqual([2, 2, 2])
  const asked = sources.flatMap((source) => source.asked.map(({ piece }) => piece.sha256))
  expect(new Set(asked).size).toBe(6)
})

test('what fewest have is asked for first, of those who have it', () => {
  const swarm = makeSwarm()
  const all = addSource(swarm, 'all')
  const half = addSource(swarm, 'half', pieces.slice(0, 4))
  start(swarm)
  const isOnlyThere = all.asked.map(({ piece }) => pieces.indexOf(piece) >= 4)
  expect(isOnlyThere).toEqual(all.asked.map(() => true))
  expect(half.asked.every(({ piece }) => pieces.indexOf(piece) < 4)).toBe(true)
})

test('PC10 the host gives at once what no linked source has', async () => {
  const swarm = makeSwarm()
  addSource(swarm, 'a', pieces.slice(0, 6)).answerAll()
  const run = start(swarm)
  await run.done
  expect(names(run.hostAsked)).toEqual(names(pieces.slice(6)))
})

test('PC10 links have two seconds to come up; then the host is asked, and yields when they come', async () => {
  const swarm = makeSwarm()
  swarm.awaited = true
  const waiting: (() => void)[] = []
  const run = start(
    swarm,
    (piece) =>
      new Promise((resolve) => {
        waiting.push(() => void goodHost(piece).then(resolve))
      }),
  )
  await timers.advance(PIECE_LINK_WAIT_MS - 100)
  expect(run.hostAsked).toEqual([])
  await timers.advance(200)
  expect(run.hostAsked).toHaveLength(3)
  swarm.awaited = false
  addSource(swarm, 'late').answerAll()
  swarm.change()
  await expect.poll(() => kept.length).toBe(COUNT - 3)
  for (const answer of waiting) answer()
  await run.done
  expect(run.hostAsked).toHaveLength(3)
})

test('PC10 no time is lost where no link is to come', async () => {
  const run = start(makeSwarm())
  await run.done
  expect(run.hostAsked).toHaveLength(COUNT)
  expect(timers.now()).toBe(0)
})

test('PC9 wrong bytes are not kept, their source is rejected, and the piece comes from elsewhere', async () => {
  const swarm = makeSwarm()
  const liar = addSource(swarm, 'liar')
  liar.answerAll(({ bytes }) => ({ kind: 'bytes', bytes: new Uint8Array(bytes) }))
  const honest = addSource(swarm, 'honest')
  honest.answerAll()
  const run = start(swarm, deadHost)
  await run.done
  expect(names(kept)).toEqual(names(pieces))
  expect(liar.rejected[0]).toContain('liar sent a piece with hash')
  expect(honest.rejected).toEqual([])
})

function lose(swarm: Swarm, source: TestSource): void {
  source.gone = true
  for (const { resolve } of source.asked) resolve({ kind: 'failed', reason: 'link lost' })
  swarm.change()
}

test('PC8 what a lost source owed is fetched from another one', async () => {
  const swarm = makeSwarm()
  const [a, b] = [addSource(swarm, 'a'), addSource(swarm, 'b')]
  const run = start(swarm, deadHost)
  expect(a.asked).toHaveLength(2)
  b.answerAll()
  for (const { piece, resolve } of [...b.asked]) resolve(right(piece))
  lose(swarm, a)
  await run.done
  expect(names(kept)).toEqual(names(pieces))
  expect(b.asked).toHaveLength(COUNT)
})

test('PC8 what the last source owed comes from the host', async () => {
  const swarm = makeSwarm()
  const only = addSource(swarm, 'only')
  const run = start(swarm)
  expect(only.asked).toHaveLength(2)
  lose(swarm, only)
  await run.done
  expect(names(run.hostAsked)).toEqual(names(pieces))
})

test('a source that takes no more now is asked when it does again', async () => {
  const swarm = makeSwarm()
  const source = addSource(swarm, 'a')
  source.paused = true
  const run = start(swarm, deadHost)
  await timers.advance(3_000)
  expect([source.asked.length, run.hostAsked.length]).toEqual([0, 0])
  source.answerAll()
  source.paused = false
  swarm.change()
  await run.done
  expect(kept).toHaveLength(COUNT)
})

test('PC10 the host helps, one piece at a time, with what peers would take long for', async () => {
  const swarm = makeSwarm()
  const source = addSource(swarm, 'a')
  const run = start(swarm, () => new Promise(() => undefined))
  // All but the pieces under way would come in time at this rate, and hardly.
  const waiting = pieces.slice(source.asked.length).reduce((sum, { bytes }) => sum + bytes, 0)
  const came = Math.ceil((waiting / PIECE_HELP_MS) * (PIECE_FLOOR_MS + 1_000))
  source.asked[0]?.onBytes(came)
  await timers.advance(PIECE_FLOOR_MS + 900)
  expect(run.hostAsked).toEqual([])
  await timers.advance(10_000)
  expect(run.hostAsked).toHaveLength(1)
})

test('PC10 a host that fails while it helps does not end what peers go on with', async () => {
  const swarm = makeSwarm()
  const source = addSource(swarm, 'a')
  const run = start(swarm, deadHost)
  await timers.advance(PIECE_FLOOR_MS + 2_000)
  await turns()
  expect(run.hostAsked).toHaveLength(1)
  await timers.advance(5_000)
  expect(run.hostAsked).toHaveLength(1)
  source.answerAll()
  for (const { piece, resolve } of [...source.asked]) resolve(right(piece))
  await run.done
  expect(names(kept)).toEqual(names(pieces))
})

test('fails with the host’s reason where nobody else has a piece', async () => {
  const swarm = makeSwarm()
  addSource(swarm, 'a', pieces.slice(1)).answerAll()
  const run = start(swarm, deadHost)
  await expect(run.done).rejects.toMatchObject({ code: 'piece-unavailable' })
})

test('an abort ends it at once, while links are awaited too, and nothing is asked afterwards', async () => {
  const swarm = makeSwarm()
  swarm.awaited = true
  const run = start(swarm)
  run.stop.abort()
  await expect(run.done).rejects.toMatchObject({ code: 'aborted' })
  const source = addSource(swarm, 'a')
  swarm.change()
  await timers.advance(10_000)
  expect([source.asked.length, run.hostAsked.length, timers.pending]).toEqual([0, 0, 0])
})
