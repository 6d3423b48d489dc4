import { readFileSync } from 'node:fs'
import { writeFile } from 'node:fs/promises'
import { createServer, type AddressInfo } from 'node:net'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { SwarmSnapshot } from '../../sdk/protocol/swarm-snapshot.ts'
import { startChild, type Child } from './child.ts'
import { eventually } from './chromium.ts'

const SCRIPT = fileURLToPath(new URL('../../dist/signaling/main.js', import.meta.url))
const COUNTER = new URL('./count-pieces.mjs', import.meta.url).href

/** A real host of the built package, in a process that can be killed and started anew. */
export type HostProcess = {
  readonly origin: string
  readonly joinUrl: string
  readonly secret: string
  swarm(): Promise<SwarmSnapshot>
  /** Waits until every block has a ready device and the stages are linked. */
  complete(): Promise<SwarmSnapshot>
  /** Requests for pieces so far, over restarts: the hash that was asked for, one entry each. */
  pieceRequests(): string[]
  kill(): Promise<void>
  /** Again on the same port, with the same data. */
  start(): Promise<void>
}

const START_MS = 60_000
const COMPLETE_MS = 60_000

export async function startHostProcess(options: {
  readonly dataDir: string
  readonly model: string
  readonly stages: number
}): Promise<HostProcess> {
  const { dataDir, model, stages } = options
  const port = await freePort()
  const requests = join(dataDir, 'piece-requests.txt')
  await writeFile(requests, '')
  const origin = `http://127.0.0.1:${port}`
  let child: Child | null = null

  async function start(): Promise<void> {
    const flags = ['--port', String(port), '--host', '127.0.0.1', '--data', dataDir]
    const what = ['--model', model, '--stages', String(stages)]
    const started = startChild(['--import', COUNTER, SCRIPT, 'start', ...flags, ...what], {
      PIECE_REQUESTS: requests,
    })
    child = started
    await eventually(`the host: ${started.output()}`, START_MS, () => secretOf(started))
  }

  const secretOf = (host: Child): string | null =>
    /\/join#s=([\w-]+)/.exec(host.output())?.[1] ?? null

  await start()
  const secret = (child === null ? null : secretOf(child)) ?? ''

  async function swarm(): Promise<SwarmSnapshot> {
    const response = await fetch(`${origin}/api/swarm`, {
      headers: { authorization: `Bearer ${secret}` },
    })
    // Our own host answered.
    return (await response.json()) as SwarmSnapshot
  }

  return {
    origin,
    secret,
    joinUrl: `${origin}/join#s=${secret}`,
    swarm,
    complete: () =>
      eventually('a complete ring', COMPLETE_MS, async () => {
        const now = await swarm()
        return now.complete ? now : null
      }),
    pieceRequests: () =>
      readFileSync(requests, 'utf8')
        .split('\n')
        .flatMap((line) => /pieces\/([0-9a-f]{64})/.exec(line)?.[1] ?? []),
    async kill() {
      await child?.kill()
    },
    start,
  }
}

async function freePort(): Promise<number> {
  const server = createServer()
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  // A TCP server has an address of this kind.
  const { port } = server.address() as AddressInfo
  await new Promise((resolve) => server.close(resolve))
  return port
}
