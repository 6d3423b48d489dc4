import { createHash, randomBytes, timingSafeEqual } from 'node:crypto'
import { readdir, rm } from 'node:fs/promises'
import { join } from 'node:path'
import * as v from 'valibot'
import { CrowdError } from '../sdk/core/errors.ts'
import { NAME_MAX_CHARS } from '../sdk/core/limits.ts'
import { readText, writePrivate } from './private-file.ts'

/** What is kept of a key: enough to know it again, not to use it. */
export type ApiKey = {
  readonly id: string
  readonly name: string
  /** Hex. */
  readonly sha256: string
  /** ISO 8601. */
  readonly createdAt: string
}

/**
 * The keys of the API, one file each in the data folder, so that adding and revoking never overwrite each
 * other. A file appears and goes as a whole; a running host reads them anew within a second.
 *
 * SHA-256 alone is right here: a key has 256 random bits, so nobody guesses one from its hash, and a slow
 * hash, which protects words that people choose, would only make each request slow.
 */
export type ApiKeys = {
  /** In order of age. @throws CrowdError storage-failed */
  list(): Promise<readonly ApiKey[]>
  /** The key itself is had here and never again. @throws CrowdError storage-failed, bad-option (name) */
  add(name: string): Promise<ApiKey & { readonly key: string }>
  /** By id, or by a name that only one key has. @throws CrowdError bad-option, storage-failed */
  revoke(idOrName: string): Promise<ApiKey>
}

const KEY_BYTES = 32
const FILE = /^([0-9a-f]{8})\.json$/

const keySchema = v.object({
  name: v.pipe(v.string(), v.maxLength(NAME_MAX_CHARS)),
  sha256: v.pipe(v.string(), v.regex(/^[0-9a-f]{64}$/)),
  createdAt: v.pipe(v.string(), v.maxLength(40)),
})

export function createApiKeys(dataDir: string): ApiKeys {
  const folder = join(dataDir, 'api-keys')
  const fileOf = (id: string): string => join(folder, `${id}.json`)

  async function list(): Promise<ApiKey[]> {
    const ids = (await filesIn(folder)).flatMap((file) => FILE.exec(file)?.[1] ?? [])
    const keys = await Promise.all(ids.map(read))
    return keys
      .filter((key) => key !== null)
      .sort((a, b) => (a.createdAt + a.id < b.createdAt + b.id ? -1 : 1))
  }

  /** null when it was revoked meanwhile. A damaged file is an error: ignoring it could open the API. */
  async function read(id: string): Promise<ApiKey | null> {
    const text = await readText(fileOf(id))
    return text === null ? null : { id, ...parseKey(text, fileOf(id)) }
  }

  return {
    list,
    async add(name) {
      if (name.length > NAME_MAX_CHARS)
        throw new CrowdError('bad-option', `a key's name has at most ${NAME_MAX_CHARS} characters`)
      const key = `sk-crowdinfer-${randomBytes(KEY_BYTES).toString('base64url')}`
      const id = randomBytes(4).toString('hex')
      const kept = { name, sha256: hashOf(key), createdAt: new Date().toISOString() }
      await writePrivate(fileOf(id), `${JSON.stringify(kept)}\n`)
      return { id, key, ...kept }
    },
    async revoke(idOrName) {
      const found = (await list()).filter(({ id, name }) => id === idOrName || name === idOrName)
      const [key] = found
      if (key === undefined)
        throw new CrowdError('bad-option', `there is no key with the id or name ${idOrName}`)
      if (found.length > 1)
        throw new CrowdError('bad-option', `${found.length} keys are called so: give the id`)
      await rm(fileOf(key.id), { force: true })
      return key
    },
  }
}

/** The key that was given, or null. Every key is compared, each in constant time. */
export function findKey(keys: readonly ApiKey[], given: string): ApiKey | null {
  const digest = Buffer.from(hashOf(given), 'hex')
  let found: ApiKey | null = null
  for (const key of keys) if (timingSafeEqual(Buffer.from(key.sha256, 'hex'), digest)) found = key
  return found
}

function hashOf(key: string): string {
  return createHash('sha256').update(key).digest('hex')
}

function parseKey(text: string, path: string): Omit<ApiKey, 'id'> {
  try {
    return v.parse(keySchema, JSON.parse(text))
  } catch (cause) {
    throw new CrowdError('storage-failed', `${path} is damaged: remove it and add the key anew`, {
      cause,
    })
  }
}

async function filesIn(folder: string): Promise<string[]> {
  try {
    return await readdir(folder)
  } catch (cause) {
    if (cause instanceof Error && 'code' in cause && cause.code === 'ENOENT') return []
    throw new CrowdError('storage-failed', `can't read ${folder}`, { cause })
  }
}
