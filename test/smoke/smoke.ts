import { rm } from 'node:fs/promises'
import { join } from 'node:path'
import type { PeerId } from '../../sdk/core/ids.ts'
import type { BlockRange } from '../../sdk/core/model/block-range.ts'
import { blockPieces, type Manifest } from '../../sdk/core/model/manifest.ts'
import { GREEDY } from '../../sdk/core/sampling/params.ts'
import { openChain, openModel, type OpenedModel } from '../../sdk/index.node.ts'
import type { SwarmSnapshot } from '../../sdk/protocol/swarm-snapshot.ts'
import { askOnPage } from '../support/ask-page.ts'
import { openAsker } from '../support/asker.ts'
import { startRing, type Ring } from '../support/ring.ts'

export type SmokeOptions = {
  readonly tabs: number
  /** Node processes beside them. */
  readonly workers: number
  /** Of the tabs; workers compute on the CPU. */
  readonly provider: 'auto' | 'wasm' | 'webgpu'
  /** A built-in name, or a path. */
  readonly model: string
  readonly question: string
  /** What each device lends, MB. */
  readonly pledgeMb?: number
  /** From the start of the host to the comparison, seconds. */
  readonly limitS?: number
  /** Where the model is cut to, and kept; a folder that is removed when absent. */
  readonly dataDir?: string
}

/** A tab or a worker of the ring. */
export type SmokeDevice = {
  readonly provider: string
  readonly path: string
  /** Blocks held, [start, end). */
  readonly blocks: readonly [number, number]
  /** Bytes of pieces that it fetched, as the browser counted them and peers gave them, or as they lie in a worker's folder … */
  readonly pieceBytes: number
  /** … and as it told the host. */
  readonly saidBytes: number
}

/** What `npm run smoke -- --json` prints. */
export type SmokeResult = {
  readonly ok: boolean
  /** The ring's text is the unsplit model's. */
  readonly identical: boolean
  readonly text: string
  readonly tokens: number
  readonly tabs: readonly SmokeDevice[]
  readonly workers: readonly SmokeDevice[]
  readonly modelBytes: number
  /** Activation bytes that passed through the host: zero while the devices are linked directly. */
  readonly hostActivationBytes: number
  readonly hopMs: number
  readonly firstTokenMs: number
  /** Of the first answer, its first token and the prompt aside. */
  readonly tokensPerSecond: number
  /** What is wrong, for people; empty when ok. */
  readonly problems: readonly string[]
}

/** What is printed when there was no answer to speak of. */
export function failedSmoke(problem: string): SmokeResult {
  return {
    ok: false,
    identical: false,
    text: '',
    tokens: 0,
    tabs: [],
    workers: [],
    modelBytes: 0,
    hostActivationBytes: 0,
    hopMs: 0,
    firstTokenMs: 0,
    tokensPerSecond: 0,
    problems: [problem],
  }
}

/** For the built-in models; generous where the machine is free. */
const LIMIT_S = 60

/** Share of its own blocks' bytes that a device may fetch: the pieces and nothing beside them. */
const SHARE_MARGIN = 1.02

/**
 * Host, devices and, where there are tabs, the chat page in headless Chromium; one question; compared with the
 * unsplit model in this process.
 */
export async function smoke(
  options: SmokeOptions,
  say: (line: string) => void,
): Promise<SmokeResult> {
  const startedAt = performance.now()
  const ring = await startRing({
    model: options.model,
    tabs: options.tabs,
    workers: options.workers,
    provider: options.provider,
    ...(options.pledgeMb === undefined ? {} : { pledgeMb: options.pledgeMb }),
    ...(options.dataDir === undefined ? {} : { dataDir: options.dataDir }),
  })
  try {
    const { tabs, workers, limitS = LIMIT_S } = options
    say(`host on port ${ring.started.port}, ${tabs} tabs and ${workers} workers are joining`)
    const { manifest } = ring.started.model
    // Before the ring is complete: a large vocabulary holds up this process, and the host in it.
    const model = await openModel(options.model, ring.dataDir)
    await ring.complete(limitS * 1_500)
    say('the ring is complete; asking')
    const asked = await askByProgram(ring, model, options.question)
    const answer = tabs === 0 ? asked : await askByPage(ring, options)
    const { ids } = asked
    // Before the reference: it blocks this process, and the host in it, while it computes.
    const swarm = ring.swarm()
    const reference = await unsplit(model, options.question)
    const result = {
      identical:
        answer.text === reference.text && JSON.stringify(ids) === JSON.stringify(reference.ids),
      text: answer.text,
      tokens: answer.tokens,
      ...(await devicesOf(swarm, ring)),
      modelBytes: bytesOf(manifest, { start: 0, end: manifest.blocks.length }),
      hostActivationBytes: swarm.relayedBytes,
      hopMs: answer.hopMs,
      firstTokenMs: answer.firstTokenMs,
      tokensPerSecond: asked.lapMs > 0 ? 1_000 / asked.lapMs : 0,
    }
    const problems = problemsOf(result, { options, manifest, expected: reference.text })
    const seconds = (performance.now() - startedAt) / 1_000
    if (seconds > limitS) problems.push(`it took ${seconds.toFixed(0)} s, the limit is ${limitS} s`)
    return { ok: problems.length === 0, ...result, problems }
  } finally {
    await ring.close()
    // Each run counts what its devices fetch.
    await rm(join(ring.dataDir, 'worker-data'), { recursive: true, force: true })
  }
}

type Answer = Pick<SmokeResult, 'text' | 'tokens' | 'hopMs' | 'firstTokenMs'>

async function askByPage(ring: Ring, options: SmokeOptions): Promise<Answer> {
  const page = await ring.openPage(ring.started.urls.chat)
  const { limitS = LIMIT_S } = options
  return await askOnPage(page, options.question, Math.max(limitS, LIMIT_S) * 1_000)
}

/** By a program, which sees the token ids that a page does not show. */
async function askByProgram(
  { started }: Ring,
  { tokenizer }: OpenedModel,
  question: string,
): Promise<Answer & { readonly ids: readonly number[]; readonly lapMs: number }> {
  const asker = await openAsker({
    url: new URL(started.urls.join).origin,
    secret: started.secret,
    manifest: started.model.manifest,
    tokenizer,
  })
  try {
    const messages = [{ role: 'user', content: question }] as const
    let text = ''
    for await (const event of asker.client.generate({ messages })) {
      if (event.kind === 'delta') text += event.text
      if (event.kind !== 'end') continue
      const { hopMs = 0, firstTokenMs = 0, lapMs = 0 } = event.timings ?? {}
      return { text, tokens: event.ids.length, hopMs, firstTokenMs, lapMs, ids: event.ids }
    }
    throw new Error('the answer has no end')
  } finally {
    asker.close()
  }
}

async function unsplit(
  model: OpenedModel,
  question: string,
): Promise<{ ids: number[]; text: string }> {
  const chain = await openChain(model, 1)
  const { ids } = await chain.generate({
    prompt: model.tokenizer.encodeChat([{ role: 'user', content: question }]),
    maxTokens: model.manifest.contextLength,
    sampling: GREEDY,
  })
  await chain.close()
  return { ids, text: model.tokenizer.decode(ids) }
}

async function devicesOf(
  swarm: SwarmSnapshot,
  ring: Ring,
): Promise<Pick<SmokeResult, 'tabs' | 'workers'>> {
  const holders = swarm.peers
    .filter((peer) => peer.role === 'worker')
    .flatMap(({ range, ...peer }) => (range === null ? [] : [{ ...peer, range }]))
    .sort((a, b) => a.range.start - b.range.start)
  const tabs: SmokeDevice[] = []
  const workers: SmokeDevice[] = []
  for (const peer of holders) {
    const worker = ring.workers.find(({ name }) => name === peer.name)
    const tab = ring.tabs.find(({ name }) => name === peer.name)
    const device: SmokeDevice = {
      provider: peer.provider ?? 'unknown',
      path: dearestPath(swarm, peer.peer),
      blocks: [peer.range.start, peer.range.end],
      pieceBytes:
        (await worker?.storedBytes()) ?? (tab?.pieces.bytes ?? Number.NaN) + (peer.peerBytes ?? 0),
      saidBytes: peer.fetchedBytes,
    }
    if (worker === undefined) tabs.push(device)
    else workers.push(device)
  }
  return { tabs, workers }
}

/** The worst path among a device's links: a ring is as good as that. */
function dearestPath(swarm: SwarmSnapshot, peer: PeerId): string {
  const paths = swarm.links
    .filter((link) => link.state === 'open' && (link.from === peer || link.to === peer))
    .map((link) => link.path)
  return (
    (['relay', 'turn', 'direct', 'local'] as const).find((path) => paths.includes(path)) ?? 'none'
  )
}

/** Bytes of the distinct pieces of a range: a tied table counts once. */
function bytesOf(manifest: Manifest, range: BlockRange): number {
  const pieces = manifest.blocks.slice(range.start, range.end).flatMap(blockPieces)
  return [...new Map(pieces.map((piece) => [piece.sha256, piece.bytes])).values()].reduce(
    (sum, bytes) => sum + bytes,
    0,
  )
}

/** What keeps a run from being ok. Exported for its test. */
export function problemsOf(
  result: Omit<SmokeResult, 'ok' | 'problems'>,
  given: { options: SmokeOptions; manifest: Manifest; expected: string },
): string[] {
  const { options, manifest, expected } = given
  const { tabs, workers } = result
  const all = [...tabs, ...workers].sort((a, b) => a.blocks[0] - b.blocks[0])
  const borders = [0, ...all.map(({ blocks }) => blocks[1])]
  const tiles = all.every(({ blocks }, index) => blocks[0] === borders[index])
  const isRing = options.tabs + options.workers > 1
  const checks: [right: boolean, problem: string][] = [
    [result.text !== '' && result.tokens > 1, 'no answer came'],
    [result.identical, `the unsplit model says "${expected}", the ring said "${result.text}"`],
    [
      result.hostActivationBytes === 0,
      `${result.hostActivationBytes} activation bytes passed through the host`,
    ],
    [result.firstTokenMs > 0, 'the first token has no time'],
    [!isRing || result.hopMs > 0, 'the hops have no time'],
    [tabs.length === options.tabs, `${tabs.length} of ${options.tabs} tabs hold layers`],
    [
      workers.length === options.workers,
      `${workers.length} of ${options.workers} workers hold layers`,
    ],
    [
      tiles && borders.at(-1) === manifest.blocks.length,
      'the devices do not hold every block exactly once',
    ],
    ...tabs.flatMap((tab) => deviceChecks('tab', tab, { ...given, isRing })),
    ...tabs.map((tab): [boolean, string] => [
      options.provider === 'auto' || tab.provider === options.provider,
      `a tab computes with ${tab.provider}, not ${options.provider}`,
    ]),
    ...workers.flatMap((worker) => deviceChecks('worker', worker, { ...given, isRing })),
    ...workers.map(({ provider }): [boolean, string] => [
      provider === 'cpu',
      `a worker computes with ${provider}, not cpu`,
    ]),
  ]
  return checks.filter(([right]) => !right).map(([, problem]) => problem)
}

function deviceChecks(
  kind: 'tab' | 'worker',
  device: SmokeDevice,
  { manifest, isRing }: { manifest: Manifest; isRing: boolean },
): [right: boolean, problem: string][] {
  const name = `the ${kind} with blocks ${device.blocks.join('–')}`
  const share = bytesOf(manifest, { start: device.blocks[0], end: device.blocks[1] })
  const counted = kind === 'tab' ? 'the browser counted' : 'its folder holds'
  return [
    [!isRing || device.path === 'direct', `${name} is linked by ${device.path}`],
    [
      device.pieceBytes > 0 && device.pieceBytes <= share * SHARE_MARGIN,
      `${name} fetched ${device.pieceBytes} bytes, its share is ${share}`,
    ],
    [
      device.saidBytes === device.pieceBytes,
      `${name} says ${device.saidBytes} bytes, ${counted} ${device.pieceBytes}`,
    ],
  ]
}
