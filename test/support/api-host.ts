import { eventually } from './eventually.ts'
import { startTestHost, type TestHost } from './host-on-disk.ts'
import { createLetterTokenizer } from './letter-tokenizer.ts'
import { joinScriptedRing, type ScriptedRing, type ScriptedSession } from './scripted-ring.ts'

export const MODEL = 'test-model'
export const END = 2
export const LIMIT_MS = 5_000

export const ids = (text: string): number[] => createLetterTokenizer().encode(text)

/** A host whose ring is scripted, and requests to its API. */
export type ApiHost = {
  readonly host: TestHost
  readonly ring: ScriptedRing
  /** With the pool's secret as the key. */
  post(path: string, body: unknown, init?: RequestInit): Promise<Response>
  chat(over?: Record<string, unknown>, init?: RequestInit): Promise<Response>
  complete(over?: Record<string, unknown>): Promise<Response>
  /** Requests that the swarm has not finished. */
  active(): number
  /** The sessions so far, once there are `count`. */
  sessions(count: number): Promise<readonly ScriptedSession[]>
  /** From now on every prompt gets this answer, ended by the end token or not at all. */
  answers(text: string, end?: boolean): void
}

/** @param generation the model's generation_config.json */
export async function openApiHost(generation?: unknown): Promise<ApiHost> {
  const files = generation === undefined ? {} : { 'generation_config.json': generation }
  const host = await startTestHost({}, files)
  const service = host.host.service()
  const ring = joinScriptedRing(service, ['w0', 'w1'])
  await eventually('a ring', LIMIT_MS, () => service.snapshot().complete)
  const post: ApiHost['post'] = (path, body, init = {}) =>
    fetch(`${host.origin}/v1${path}`, {
      method: 'POST',
      body: typeof body === 'string' ? body : JSON.stringify(body),
      headers: { authorization: `Bearer ${host.started.secret ?? ''}` },
      ...init,
    })
  return {
    host,
    ring,
    post,
    chat: (over = {}, init = {}) =>
      post(
        '/chat/completions',
        { model: MODEL, messages: [{ role: 'user', content: 'Hi' }], ...over },
        init,
      ),
    complete: (over = {}) => post('/completions', { model: MODEL, prompt: 'Hi', ...over }),
    active: () =>
      service
        .snapshot()
        .requests.filter(({ state }) => ['queued', 'opening', 'running'].includes(state)).length,
    sessions: (count) =>
      eventually('sessions', LIMIT_MS, () =>
        ring.sessions.length >= count ? ring.sessions : null,
      ),
    answers(text, end = true) {
      ring.onPrompt = (session) => session.tokens([...ids(text), ...(end ? [END] : [])])
    },
  }
}
