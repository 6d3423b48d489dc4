import { createPrivateKey, X509Certificate } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { isIPv4 } from 'node:net'
import { join } from 'node:path'
import { generate } from 'selfsigned'
import { CrowdError } from '../sdk/core/errors.ts'
import type { Config } from './config.ts'
import { readText, writePrivate } from './private-file.ts'

type Certificate = { readonly cert: string; readonly key: string }

const DAY_MS = 86_400_000
/** Browsers refuse certificates that are valid for longer than about 13 months. */
const VALID_DAYS = 396
/** Renewed this long before its end. */
const RENEW_DAYS = 30
/** Addresses in a certificate; the newest are kept. */
const ADDRESSES_MAX = 16

/**
 * The certificate to serve with, or null without TLS.
 * @throws CrowdError bad-option (a file can't be read, or key and certificate don't belong together)
 */
export async function loadCertificate(
  tls: Config['tls'],
  options: {
    readonly dataDir: string
    /** This machine's, the likeliest first. */
    readonly addresses: readonly string[]
    readonly nowMs: number
  },
): Promise<Certificate | null> {
  switch (tls.kind) {
    case 'off':
      return null
    case 'files':
      return await fromFiles(tls.cert, tls.key)
    case 'own':
      return await ownCertificate(options)
  }
}

async function fromFiles(certPath: string, keyPath: string): Promise<Certificate> {
  const cert = await readOption('--cert', certPath)
  const key = await readOption('--key', keyPath)
  let matches: boolean
  try {
    matches = new X509Certificate(cert).checkPrivateKey(createPrivateKey(key))
  } catch (cause) {
    throw new CrowdError('bad-option', `--cert and --key must be PEM files: ${String(cause)}`, {
      cause,
    })
  }
  if (!matches)
    throw new CrowdError('bad-option', `--key ${keyPath} does not belong to --cert ${certPath}`)
  return { cert, key }
}

async function readOption(flag: string, path: string): Promise<string> {
  try {
    return await readFile(path, 'utf8')
  } catch (cause) {
    throw new CrowdError('bad-option', `${flag}: can't read ${path}`, { cause })
  }
}

/**
 * Made on first use and kept, so that a device that trusted it once goes on doing so. A renewed one is valid
 * for the earlier addresses too: a machine that moves between networks is trusted anew once in each.
 */
async function ownCertificate(options: {
  readonly dataDir: string
  readonly addresses: readonly string[]
  readonly nowMs: number
}): Promise<Certificate> {
  const certPath = join(options.dataDir, 'host-cert.pem')
  const keyPath = join(options.dataDir, 'host-key.pem')
  const cert = await readText(certPath)
  const key = await readText(keyPath)
  if (cert !== null && key !== null && isGood(cert, key, options)) return { cert, key }
  const addresses = [...new Set([...options.addresses, ...addressesIn(cert)])]
  const made = await makeCertificate(addresses.slice(0, ADDRESSES_MAX), options.nowMs)
  await writePrivate(keyPath, made.key)
  await writePrivate(certPath, made.cert)
  return made
}

/**
 * Not damaged, not near its end, and valid for the address that other devices are most likely told. The rest
 * comes and goes with containers and adapters, which is no reason to ask everybody for trust again.
 */
function isGood(
  cert: string,
  key: string,
  options: { readonly addresses: readonly string[]; readonly nowMs: number },
): boolean {
  try {
    const parsed = new X509Certificate(cert)
    if (!parsed.checkPrivateKey(createPrivateKey(key))) return false
    const left = Date.parse(parsed.validTo) - options.nowMs
    const [main] = options.addresses
    return left > RENEW_DAYS * DAY_MS && (main === undefined || parsed.checkIP(main) !== undefined)
  } catch {
    // Whatever is wrong with it: a new one is made.
    return false
  }
}

/** IPv4 addresses of a certificate besides the loopback; none where it can't be read. */
function addressesIn(cert: string | null): string[] {
  if (cert === null) return []
  try {
    const names = new X509Certificate(cert).subjectAltName ?? ''
    return names
      .split(', ')
      .flatMap((name) => (name.startsWith('IP Address:') ? [name.slice('IP Address:'.length)] : []))
      .filter((address) => isIPv4(address) && !address.startsWith('127.'))
  } catch {
    return []
  }
}

async function makeCertificate(addresses: readonly string[], nowMs: number): Promise<Certificate> {
  const ips = ['127.0.0.1', '::1', ...addresses]
  const made = await generate([{ name: 'commonName', value: 'CrowdInfer host' }], {
    keyType: 'ec',
    curve: 'P-256',
    algorithm: 'sha256',
    // A little in the past, for devices whose clock is behind.
    notBeforeDate: new Date(nowMs - DAY_MS),
    notAfterDate: new Date(nowMs + VALID_DAYS * DAY_MS),
    extensions: [
      { name: 'basicConstraints', cA: false },
      { name: 'keyUsage', digitalSignature: true, keyEncipherment: true },
      { name: 'extKeyUsage', serverAuth: true },
      {
        name: 'subjectAltName',
        altNames: [
          { type: 2 as const, value: 'localhost' },
          ...ips.map((ip) => ({ type: 7 as const, ip })),
        ],
      },
    ],
  })
  return { cert: made.cert, key: made.private }
}
