import { X509Certificate } from 'node:crypto'
import { mkdtemp, rm, stat, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { loadCertificate } from './certificate.ts'

const DAY_MS = 86_400_000
const nowMs = Date.now()
let dataDir: string
beforeEach(async () => {
  dataDir = await mkdtemp(join(tmpdir(), 'crowdinfer-cert-'))
})
afterEach(async () => {
  await rm(dataDir, { recursive: true, force: true })
})

const own = (addresses: string[] = ['192.168.1.20'], at = nowMs) =>
  loadCertificate({ kind: 'own' }, { dataDir, addresses, nowMs: at })

test('the own certificate names localhost and every address, and its key is private', async () => {
  const made = await own()
  const certificate = new X509Certificate(made?.cert ?? '')
  expect(certificate.checkHost('localhost')).toBe('localhost')
  expect(certificate.checkIP('127.0.0.1')).toBe('127.0.0.1')
  expect(certificate.checkIP('192.168.1.20')).toBe('192.168.1.20')
  expect((await stat(join(dataDir, 'host-key.pem'))).mode & 0o777).toBe(0o600)
})

test('it is kept, and made anew near its end, for a new address, and when it is damaged', async () => {
  const first = await own()
  expect(await own()).toEqual(first)
  expect(await own(['192.168.1.20'], nowMs + 360 * DAY_MS)).toEqual(first)
  const later = await own(['192.168.1.20'], nowMs + 380 * DAY_MS)
  expect(later?.cert).not.toBe(first?.cert)
  const moved = await own(['10.0.0.7'], nowMs + 380 * DAY_MS)
  expect(moved?.cert).not.toBe(later?.cert)
  await writeFile(join(dataDir, 'host-cert.pem'), 'damaged')
  expect((await own())?.cert).toContain('BEGIN CERTIFICATE')
})

test('other addresses may come and go; earlier ones stay valid after a move', async () => {
  const home = await own(['192.168.1.20', '172.17.0.1'])
  expect(await own(['192.168.1.20', '172.18.0.1'])).toEqual(home)
  expect(await own([])).toEqual(home)
  const moved = await own(['10.0.0.7'])
  expect(moved?.cert).not.toBe(home?.cert)
  const certificate = new X509Certificate(moved?.cert ?? '')
  for (const address of ['10.0.0.7', '192.168.1.20', '127.0.0.1'])
    expect(certificate.checkIP(address)).toBe(address)
  expect(await own(['192.168.1.20'])).toEqual(moved)
})

test('files that are missing, no PEM, or do not belong together are named', async () => {
  const files = (cert: string, key: string) =>
    loadCertificate({ kind: 'files', cert, key }, { dataDir, addresses: [], nowMs })
  await own()
  const cert = join(dataDir, 'host-cert.pem')
  const key = join(dataDir, 'host-key.pem')
  expect((await files(cert, key))?.cert).toContain('BEGIN CERTIFICATE')
  await expect(files(join(dataDir, 'none'), key)).rejects.toThrow(/--cert: can't read/)
  await expect(files(key, cert)).rejects.toMatchObject({ code: 'bad-option' })
  const kept = join(dataDir, 'other.pem')
  await writeFile(kept, (await files(cert, key))?.cert ?? '')
  await own(['10.9.9.9'])
  await expect(files(kept, key)).rejects.toThrow(/does not belong/)
})

test('without TLS there is none', async () => {
  expect(await loadCertificate({ kind: 'off' }, { dataDir, addresses: [], nowMs })).toBeNull()
})
