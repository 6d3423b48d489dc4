import { randomBytes } from 'node:crypto'
import { join } from 'node:path'
import { readText, writePrivate } from './private-file.ts'

/** 128 bits in base64url. */
const SHAPE = /^[\w-]{22}$/

/** The pool's secret, made on first use and kept, so that invite links survive a restart. */
export async function poolSecret(dataDir: string): Promise<string> {
  const path = join(dataDir, 'pool-secret')
  const kept = (await readText(path))?.trim()
  if (kept !== undefined && SHAPE.test(kept)) return kept
  const secret = randomBytes(16).toString('base64url')
  await writePrivate(path, `${secret}\n`)
  return secret
}
