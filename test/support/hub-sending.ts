import type { IncomingMessage, ServerResponse } from 'node:http'
import { gzipSync } from 'node:zlib'
import type { FakeFile, HubFault } from './hub-server.ts'

/** How the fake hub sends bytes, with its faults. */

const CHUNK_BYTES = 256 * 1024

type Sent = {
  readonly file: FakeFile
  readonly fault: HubFault | null
  readonly headers: Record<string, string>
}

export async function sendFile(
  request: IncomingMessage,
  response: ServerResponse,
  { file, fault, headers }: Sent,
): Promise<void> {
  if (fault?.kind === 'status') {
    send(response, fault.status, fault.headers ?? {}, 'fault')
    return
  }
  if (fault?.kind === 'web-page') {
    send(response, 200, { 'content-type': 'text/html' }, '<html>Sign in to the network</html>')
    return
  }
  const asked = askedRange(request, fault)
  const { start, end } = asked ?? { start: 0, end: file.bytes }
  response.writeHead(asked ? 206 : 200, {
    ...headers,
    'accept-ranges': 'bytes',
    ...(asked ? { 'content-range': contentRange(asked, file, fault) } : {}),
    ...lengthHeader(start, end, fault),
  })
  if (fault?.kind === 'gzip') response.end(gzipSync(file.read(start, end)))
  else await sendBytes(response, file, { start, end, fault })
}

type Range = { readonly start: number; readonly end: number }

function askedRange(request: IncomingMessage, fault: HubFault | null): Range | null {
  const asked = /^bytes=(\d+)-(\d+)$/.exec(request.headers.range ?? '')
  if (asked === null || fault?.kind === 'no-range') return null
  return { start: Number(asked[1]), end: Number(asked[2]) + 1 }
}

function contentRange({ start, end }: Range, file: FakeFile, fault: HubFault | null): string {
  const shift = fault?.kind === 'shifted' ? 1 : 0
  return `bytes ${start + shift}-${end - 1 + shift}/${file.bytes}`
}

function lengthHeader(start: number, end: number, fault: HubFault | null): Record<string, string> {
  if (fault?.kind === 'gzip') return { 'content-encoding': 'gzip' }
  const stop = fault?.kind === 'short' ? halfOf(start, end) : end
  return { 'content-length': String(stop - start) }
}

function halfOf(start: number, end: number): number {
  return start + Math.floor((end - start) / 2)
}

async function sendBytes(
  response: ServerResponse,
  file: FakeFile,
  { start, end, fault }: Range & { readonly fault: HubFault | null },
): Promise<void> {
  const kind = fault?.kind ?? 'none'
  const stop = ['truncated', 'short', 'stalled'].includes(kind) ? halfOf(start, end) : end
  for (let at = start; at < stop && !response.destroyed; at += CHUNK_BYTES) {
    const bytes = Buffer.from(file.read(at, Math.min(stop, at + CHUNK_BYTES)))
    if (kind === 'wrong-byte' && at === start) bytes.writeUInt8(bytes.readUInt8(0) ^ 1, 0)
    if (!response.write(bytes)) await drained(response)
  }
  if (kind === 'stalled') return
  if (kind === 'truncated') response.socket?.end()
  else response.end()
}

function drained(response: ServerResponse): Promise<void> {
  return new Promise((done) => {
    const end = (): void => {
      response.off('drain', end).off('close', end)
      done()
    }
    response.once('drain', end).once('close', end)
  })
}

export function sendJson(
  response: ServerResponse,
  json: unknown,
  headers: Record<string, string> = {},
): void {
  send(response, 200, { 'content-type': 'application/json', ...headers }, JSON.stringify(json))
}

export function send(
  response: ServerResponse,
  status: number,
  headers: Record<string, string>,
  body: string,
): void {
  response.writeHead(status, { 'content-length': String(Buffer.byteLength(body)), ...headers })
  response.end(body)
}
