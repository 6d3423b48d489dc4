import { mkdir, writeFile } from 'node:fs/promises'
import { request } from 'node:http'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import type { ModelId, PeerId, RequestId } from '../../sdk/core/ids.ts'
import { GREEDY } from '../../sdk/core/sampling/params.ts'
import { createApiKeys } from '../../signaling/api-keys.ts'
import { END, LIMIT_MS, MODEL, openApiHost, type ApiHost } from '../support/api-host.ts'
import { eventually } from '../support/eventually.ts'
import { startTestHost } from '../support/host-on-disk.ts'

let api: ApiHost
beforeEach(async () => {
  api = await openApiHost()
})
afterEach(async () => {
  await api.host.close()
})

/** Other askers' questions: some run, the rest waits. */
function fillQueue(count: number): void {
  for (let index = 0; index < count; index += 1) {
    const peer = `other-${index}` as PeerId
    const handle = api.host.host
      .service()
      .join(
        { peer, name: peer, role: 'asker' },
        { send: () => undefined, sendRelay: () => undefined, close: () => undefined },
      )
    handle.receive({
      kind: 'ask',
      request: 'r' as RequestId,
      model: MODEL as ModelId,
      prompt: [5],
      maxTokens: 4,
      stopIds: [],
      sampling: GREEDY,
    })
  }
}

type ErrorBody = { error: { message: string; type: string; param: string | null; code: string } }
async function failure(response: Response) {
  const body = (await response.json()) as ErrorBody
  expect(Object.keys(body.error).sort()).toEqual(['code', 'message', 'param', 'type'])
  expect(response.headers.get('access-control-allow-origin')).toBe('*')
  expect(response.headers.get('cache-control')).toBe('no-store')
  return { status: response.status, ...body.error, retryAfter: response.headers.get('retry-after') }
}

describe('refusals', () => {
  test('a prompt that is too long, with both numbers', async () => {
    for (const stream of [false, true]) {
      const response = await api.complete({ prompt: 'x'.repeat(16), stream })
      expect(await failure(response)).toMatchObject({
        status: 400,
        code: 'context_length_exceeded',
        type: 'invalid_request_error',
        message: expect.stringMatching(/16 tokens.*16/) as string,
      })
    }
    expect((await api.complete({ prompt: 'x'.repeat(15), max_tokens: 0 })).status).toBe(400)
  })

  test('another model, a field, a token outside the vocabulary', async () => {
    expect(await failure(await api.chat({ model: 'gpt-x' }))).toMatchObject({
      status: 404,
      code: 'model_not_found',
      param: 'model',
    })
    expect(await failure(await api.chat({ tools: [{}] }))).toMatchObject({
      status: 400,
      code: 'unsupported_parameter',
      param: 'tools',
    })
    expect(await failure(await api.chat({ logit_bias: { '100': 1 } }))).toMatchObject({
      status: 400,
      param: 'logit_bias',
    })
    expect((await failure(await api.complete({ prompt: [100] }))).status).toBe(400)
    expect((await failure(await api.complete({ prompt: '' }))).status).toBe(400)
    expect(
      (await failure(await api.post('/models/other', undefined, { method: 'GET' }))).status,
    ).toBe(404)
  })

  test('no JSON, too much of it, no such path, another method', async () => {
    expect(await failure(await api.post('/completions', '{"model":'))).toMatchObject({
      status: 400,
      code: 'invalid_json',
    })
    expect(
      await failure(await api.post('/completions', 'x'.repeat(4 * 1024 * 1024 + 1))),
    ).toMatchObject({
      status: 413,
      code: 'request_too_large',
      type: 'invalid_request_error',
    })
    expect(await failure(await api.post('/embeddings', {}))).toMatchObject({
      status: 404,
      code: 'unknown_url',
    })
    const get = await api.post('/chat/completions', undefined, { method: 'GET' })
    expect(get.headers.get('allow')).toBe('POST, OPTIONS')
    expect(await failure(get)).toMatchObject({ status: 405, code: 'method_not_allowed' })
    expect((await failure(await api.post('/models', {}))).status).toBe(405)
  })

  test('an incomplete ring says which layers have no worker', async () => {
    api.ring.leave()
    for (const stream of [false, true])
      expect(await failure(await api.chat({ stream }))).toMatchObject({
        status: 503,
        code: 'ring-incomplete',
        type: 'server_error',
        retryAfter: '10',
        message: expect.stringMatching(/layers 1–6.* have no worker/) as string,
      })
  })

  test('a full queue says so before a stream begins', async () => {
    fillQueue(20)
    for (const stream of [false, true])
      expect(await failure(await api.chat({ stream }))).toMatchObject({
        status: 429,
        code: 'rate_limit_exceeded',
        type: 'rate_limit_error',
        retryAfter: '5',
        message: expect.stringContaining('waiting already') as string,
      })
    // Nothing is left of what was refused.
    expect(api.active()).toBe(20)
  })

  test('one caller can’t fill the queue, and has room again when its answers end', async () => {
    const asked = Array.from({ length: 3 }, () => api.chat({ n: 8 }))
    await eventually('three times four answers', LIMIT_MS, () => api.active() === 12)
    for (const stream of [false, true])
      expect(await failure(await api.chat({ stream }))).toMatchObject({
        status: 429,
        message: expect.stringContaining('answers of yours') as string,
      })
    api.ring.onPrompt = (session) => session.tokens([END])
    for (const session of [...api.ring.sessions]) session.tokens([END])
    expect((await Promise.all(asked)).map(({ status }) => status)).toEqual([200, 200, 200])
    expect((await api.chat()).status).toBe(200)
  })

  test('a device that fails', async () => {
    api.ring.onPrompt = (session) => session.fail('broke')
    expect(await failure(await api.chat())).toMatchObject({
      status: 503,
      code: 'stage-failed',
      message: expect.stringContaining('broke') as string,
    })
  })
})

describe('origins', () => {
  test.each(['/models', '/models/x', '/chat/completions', '/completions', '/no/such/path'])(
    'a preflight of %s is answered, without a key, and never as a request',
    async (path) => {
      const response = await fetch(`${api.host.origin}/v1${path}`, {
        method: 'OPTIONS',
        headers: {
          origin: 'https://example.org',
          'access-control-request-method': 'POST',
          'access-control-request-headers': 'authorization,x-stainless-os',
          'access-control-request-private-network': 'true',
        },
      })
      expect(response.status).toBe(204)
      const { headers } = response
      expect(headers.get('access-control-allow-origin')).toBe('*')
      expect(headers.get('access-control-allow-headers')).toBe('authorization,x-stainless-os')
      expect(headers.get('access-control-allow-methods')).toContain('POST')
      expect(headers.get('access-control-allow-private-network')).toBe('true')
    },
  )
})

/** The status of a question; not by fetch, which chooses some headers itself. */
function ask(origin: string, headers: Record<string, string>): Promise<number | undefined> {
  return new Promise((resolve, reject) => {
    const asked = request(`${origin}/v1/completions`, { method: 'POST', headers }, (response) => {
      response.resume()
      resolve(response.statusCode)
    })
    asked.on('error', reject).end(JSON.stringify({ model: MODEL, prompt: 'Hi' }))
  })
}

describe('keys', () => {
  const statusOf = (headers: Record<string, string>) => ask(api.host.origin, headers)

  test('a private pool takes its secret, and no header stands in for it', async () => {
    api.answers('x')
    const none: Record<string, string>[] = [
      {},
      { host: `localhost:${api.host.started.port}` },
      { host: 'localhost', origin: 'http://localhost:3000' },
      { 'x-forwarded-for': '127.0.0.1' },
      { authorization: 'Bearer none' },
    ]
    for (const headers of none) expect(await statusOf(headers)).toBe(401)
    const authorization = `Bearer ${api.host.started.secret ?? ''}`
    expect(await statusOf({ authorization })).toBe(200)
    expect(await statusOf({ authorization, origin: 'https://example.org' })).toBe(200)
  })

  test('the models are shown without a key until there is one; nothing else is', async () => {
    const get = (path: string) => fetch(`${api.host.origin}/v1${path}`)
    expect((await get('/models')).status).toBe(200)
    expect((await get(`/models/${MODEL}`)).status).toBe(200)
    expect((await failure(await get('/models/other'))).status).toBe(404)
    for (const path of ['/chat/completions', '/models/x/y', '/embeddings'])
      expect((await failure(await get(path))).status).toBe(401)
    const post = await fetch(`${api.host.origin}/v1/models`, { method: 'POST' })
    expect((await failure(post)).status).toBe(401)
    await createApiKeys(api.host.dataDir).add('laptop')
    for (const path of ['/models', '/models/other'])
      await eventually(path, LIMIT_MS, async () => (await get(path)).status === 401)
  })

  test('a damaged key file is told to the host, and its place to nobody else', async () => {
    const { dataDir, logged } = api.host
    const folder = join(dataDir, 'api-keys')
    await mkdir(folder)
    await writeFile(join(folder, '00000000.json'), '{')
    await eventually('a fault', LIMIT_MS, async () => (await statusOf({})) === 500)
    const refused = await failure(await api.chat())
    expect(refused).toMatchObject({ status: 500, code: 'storage-failed', type: 'server_error' })
    expect(refused.message).not.toContain(dataDir)
    expect(refused.message).not.toContain('00000000')
    expect(logged).toEqual([expect.stringContaining(join(folder, '00000000.json'))])
  })

  test('an open pool takes everybody', async () => {
    const open = await startTestHost({ public: true })
    // Nobody holds layers: who gets as far as that was let in.
    expect(await ask(open.origin, {})).toBe(503)
    await open.close()
  })

  test('a running host takes a new key and drops a revoked one', async () => {
    api.answers('x')
    const keys = createApiKeys(api.host.dataDir)
    const status = (key: string) => statusOf({ authorization: `Bearer ${key}` })
    const secret = api.host.started.secret ?? ''
    expect(await status(secret)).toBe(200)
    const { id, key } = await keys.add('laptop')
    await eventually('a key to be asked for', LIMIT_MS, async () => (await status(secret)) === 401)
    expect(await status(key)).toBe(200)
    expect(await failure(await api.chat())).toMatchObject({
      status: 401,
      type: 'authentication_error',
      code: 'invalid_api_key',
      param: null,
    })
    await keys.revoke(id)
    await eventually('the secret again', LIMIT_MS, async () => (await status(secret)) === 200)
    expect(await status(key)).toBe(401)
  })
})
