import { expect, test } from 'vitest'
import { FETCH_TRIES } from './core/limits.ts'
import { fetchText } from './fetch-text.ts'
import { abortedError } from './storage/download.ts'

const url = new URL('http://host/models/a/manifest.json')

/** Answers in turn; the last one again and again. A pause passes at once, unless it was aborted. */
function setUp(...answers: (() => Response)[]) {
  const pauses: number[] = []
  let asked = 0
  let onPause = (): void => undefined
  const deps = {
    fetch: () => {
      const answer = answers[Math.min(asked, answers.length - 1)]
      asked += 1
      return new Promise<Response>((resolve) => {
        resolve(answer?.() ?? Response.error())
      })
    },
    timing: {
      random: () => 1,
      wait(ms: number, signal: AbortSignal) {
        pauses.push(ms)
        onPause()
        return signal.aborted ? Promise.reject(abortedError()) : Promise.resolve()
      },
    },
  }
  const read = (signal?: AbortSignal) =>
    fetchText(url, deps, {
      what: 'the description',
      maxChars: 10,
      ...(signal === undefined ? {} : { signal }),
    })
  return { read, pauses, asked: () => asked, pausing: (task: () => void) => (onPause = task) }
}

const status = (code: number) => () => new Response('', { status: code })
const refused = (): Response => {
  throw new TypeError('connection refused')
}
const good = () => new Response('{}')

test('a host that comes back within a few tries is no failure', async () => {
  const kit = setUp(refused, status(503), good)
  expect(await kit.read()).toBe('{}')
  expect(kit.pauses).toEqual([500, 1_000])
})

test('a host that stays away is one, after a bounded number of tries', async () => {
  const kit = setUp(refused)
  await expect(kit.read()).rejects.toMatchObject({
    code: 'piece-unavailable',
    message: 'the description: connection refused',
  })
  expect(kit.asked()).toBe(FETCH_TRIES)
})

test('what will not pass is not tried again', async () => {
  const missing = setUp(status(404))
  await expect(missing.read()).rejects.toThrow('the description: the host answered 404')
  expect(missing.asked()).toBe(1)
  const long = setUp(() => new Response('x'.repeat(11)))
  await expect(long.read()).rejects.toThrow('larger')
  expect(long.asked()).toBe(1)
})

test('an abort ends the pause, and no further try is made', async () => {
  const kit = setUp(refused)
  const abort = new AbortController()
  kit.pausing(() => abort.abort())
  await expect(kit.read(abort.signal)).rejects.toMatchObject({ code: 'aborted' })
  expect(kit.asked()).toBe(1)
})
