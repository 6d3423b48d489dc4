import type { PeerId } from '../../sdk/core/ids.ts'
import type { BlockRange } from '../../sdk/core/model/block-range.ts'
import { blockPieces, type Manifest } from '../../sdk/core/model/manifest.ts'
import { GREEDY } from '../../sdk/core/sampling/params.ts'
import { openChain, openModel } from '../../sdk/index.node.ts'
import type { SwarmSnapshot } from '../../sdk/protocol/swarm-snapshot.ts'
import { askOnPage } from '../support/ask-page.ts'
import { openAsker } from '../support/asker.ts'
import { startRing, type Ring, type WorkerTab } from '../support/ring.ts'

export type SmokeOptions = {
  readonly tabs: number
  readonly provider: 'auto' | 'wasm' | 'webgpu'
  readonly model: string
  readonly question: string
}

export type SmokeTab = {
  readonly provider: string
  readonly path: string
  /** Blocks held, [start, end). */
  readonly blocks: readonly [number, number]
  /** Bytes of pieces that this tab fetched, as the browser counted them … */
  readonly pieceBytes: number
  /** … and as the tab told the host. */
  readonly saidBytes: number
}

/** What `npm run smoke -- --json` prints. */
export type SmokeResult = {
  readonly ok: boolean
  /** The ring's text is the unsplit model's. */
  readonly identical: boolean
  readonly text: string
  readonly tokens: number
  readonly tabs: readonly SmokeTab[]
  readonly modelBytes: number
  /** Activation bytes that passed through the host: zero while the tabs are linked directly. */
  readonly hostActivationBytes: number
  readonly hopMs: number
  readonly firstTokenMs: number
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
    modelBytes: 0,
    hostActivationBytes: 0,
    hopMs: 0,
    firstTokenMs: 0,
    problems: [problem],
  }
}

/** From the start of the host to the comparison; generous where the machine is free. */
const LIMIT_S = 60

/** Share of its own blocks' bytes that a tab may fetch: the pieces and nothing beside them. */
const SHARE_MARGIN = 1.02

/** Host, tabs and chat page in headless Chromium; one question; compared with the unsplit model in this process. */
export async function smoke(
  options: SmokeOptions,
  say: (line: string) => void,
): Promise<SmokeResult> {
  const startedAt = performance.now()
  const ring = await startRing({
    model: options.model,
    tabs: options.tabs,
    provider: options.provider,
  })
  try {
    say(`host on port ${ring.started.port}, ${options.tabs} tabs are joining`)
    const { manifest } = ring.started.model
    await ring.complete()
    say('the ring is complete; asking on the chat page')
    const page = await ring.openPage(ring.started.urls.chat)
    const answer = await askOnPage(page, options.question)
    const ids = await askedIds(ring, options)
    // Before the reference: it blocks this process, and the host in it, while it computes.
    const swarm = ring.swarm()
    const reference = await unsplit(options, ring.dataDir)
    const result = {
      identical:
        answer.text === reference.text && JSON.stringify(ids) === JSON.stringify(reference.ids),
      text: answer.text,
      tokens: answer.tokens,
      tabs: tabsOf(swarm, ring.tabs),
      modelBytes: bytesOf(manifest, { start: 0, end: manifest.blocks.length }),
      hostActivationBytes: swarm.relayedBytes,
      hopMs: answer.hopMs,
      firstTokenMs: answer.firstTokenMs,
    }
    const problems = problemsOf(result, { options, manifest, expected: reference.text })
    const seconds = (performance.now() - startedAt) / 1_000
    if (seconds > LIMIT_S)
      problems.push(`it took ${seconds.toFixed(0)} s, the limit is ${LIMIT_S} s`)
    return { ok: problems.length === 0, ...result, problems }
  } finally {
    await ring.close()
  }
}

/** The same question once more by a program, which sees the token ids that a page does not show. */
async function askedIds(ring: Ring, options: SmokeOptions): Promise<readonly number[]> {
  const { started, dataDir } = ring
  const { tokenizer } = await openModel(options.model, dataDir)
  const asker = await openAsker({
    url: new URL(started.urls.join).origin,
    secret: started.secret,
    manifest: started.model.manifest,
    tokenizer,
  })
  try {
    const messages = [{ role: 'user', content: options.question }] as const
    for await (const event of asker.client.generate({ messages })) {
      if (event.kind === 'end') return event.ids
    }
    return []
  } finally {
    asker.close()
  }
}

async function unsplit(
  options: SmokeOptions,
  dataDir: string,
): Promise<{ ids: number[]; text: string }> {
  const model = await openModel(options.model, dataDir)
  const chain = await openChain(model, 1)
  const { ids } = await chain.generate({
    prompt: model.tokenizer.encodeChat([{ role: 'user', content: options.question }]),
    maxTokens: model.manifest.contextLength,
    sampling: GREEDY,
  })
  await chain.close()
  return { ids, text: model.tokenizer.decode(ids) }
}

function tabsOf(swarm: SwarmSnapshot, tabs: readonly WorkerTab[]): SmokeTab[] {
  return swarm.peers
    .filter((peer) => peer.role === 'worker' && peer.range !== null)
    .map((peer) => ({
      provider: peer.provider ?? 'unknown',
      path: dearestPath(swarm, peer.peer),
      blocks: [peer.range?.start ?? 0, peer.range?.end ?? 0] as const,
      pieceBytes: tabs.find((tab) => tab.name === peer.name)?.pieces.bytes ?? Number.NaN,
      saidBytes: peer.fetchedBytes,
    }))
    .sort((a, b) => a.blocks[0] - b.blocks[0])
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
  const { tabs } = result
  const borders = [0, ...tabs.map(({ blocks }) => blocks[1])]
  const tiles = tabs.every(({ blocks }, index) => blocks[0] === borders[index])
  const checks: [right: boolean, problem: string][] = [
    [result.text !== '' && result.tokens > 1, 'no answer came'],
    [result.identical, `the unsplit model says "${expected}", the ring said "${result.text}"`],
    [
      result.hostActivationBytes === 0,
      `${result.hostActivationBytes} activation bytes passed through the host`,
    ],
    [result.firstTokenMs > 0, 'the first token has no time'],
    [options.tabs === 1 || result.hopMs > 0, 'the hops have no time'],
    [tabs.length === options.tabs, `${tabs.length} of ${options.tabs} tabs hold layers`],
    [
      tiles && borders.at(-1) === manifest.blocks.length,
      'the tabs do not hold every block exactly once',
    ],
    ...tabs.flatMap((tab) => tabChecks(tab, options, manifest)),
  ]
  return checks.filter(([right]) => !right).map(([, problem]) => problem)
}

function tabChecks(
  tab: SmokeTab,
  options: SmokeOptions,
  manifest: Manifest,
): [right: boolean, problem: string][] {
  const name = `the tab with blocks ${tab.blocks.join('–')}`
  const share = bytesOf(manifest, { start: tab.blocks[0], end: tab.blocks[1] })
  return [
    [options.tabs === 1 || tab.path === 'direct', `${name} is linked by ${tab.path}`],
    [
      options.provider === 'auto' || tab.provider === options.provider,
      `${name} computes with ${tab.provider}, not ${options.provider}`,
    ],
    [
      tab.pieceBytes > 0 && tab.pieceBytes <= share * SHARE_MARGIN,
      `${name} fetched ${tab.pieceBytes} bytes, its share is ${share}`,
    ],
    [
      tab.saidBytes === tab.pieceBytes,
      `${name} says ${tab.saidBytes} bytes, the browser counted ${tab.pieceBytes}`,
    ],
  ]
}
