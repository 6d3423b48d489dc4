import { GREEDY } from '../../sdk/core/sampling/params.ts'
import { openChain, openModel } from '../../sdk/index.node.ts'
import { openAsker } from '../support/asker.ts'
import { startRing } from '../support/ring.ts'

export type Lap = { readonly lapMs: number; readonly computeMs: number; readonly hopMs: number }

export type RingRow = Lap & {
  readonly stages: number
  /** `tabs` in Chromium over WebRTC; `process`: all stages in one Node process. */
  readonly kind: 'tabs' | 'process'
  /** Speed against the unsplit model in one tab of the same run: 1 = as fast. */
  readonly ratio: number
  /** Speed against the unsplit model of the same kind in the same run. */
  readonly ratioOfKind: number
  /**
   * The same with this ring's compute replaced by the unsplit one's: what splitting costs when each device has its own
   * processor instead of sharing this machine's.
   */
  readonly ratioOwnCompute: number
}

/** What is asked of rings of tabs on one machine. */
export const HOP_MAX_MS = 4
export const TWO_TABS_MIN = 0.85

export type BenchOptions = {
  readonly model: string
  readonly dataDir: string
  readonly stages: readonly number[]
  readonly tokens: number
  readonly rounds: number
}

/** Asks for a long answer: the built-in models must not stop before the laps are counted. */
const MESSAGES = [{ role: 'user', content: 'Tell me a story about a cat and a boat.' }] as const

/** Rings of tabs and chains in one process, the unsplit model in one tab first. */
export async function bench(
  options: BenchOptions,
  say: (line: string) => void,
): Promise<RingRow[]> {
  const measured: (Lap & Pick<RingRow, 'stages' | 'kind'>)[] = []
  for (const kind of ['tabs', 'process'] as const) {
    for (const stages of options.stages) {
      say(`${kind}, ${stages} ${stages === 1 ? 'stage' : 'stages'}`)
      const laps =
        kind === 'tabs' ? await tabLaps(options, stages) : await processLaps(options, stages)
      measured.push({ stages, kind, ...fastest(laps) })
    }
  }
  return compare(measured)
}

/** Adds the ratios; the rows must hold the unsplit model of each kind. */
export function compare(measured: readonly (Lap & Pick<RingRow, 'stages' | 'kind'>)[]): RingRow[] {
  const unsplit = (kind: RingRow['kind']): Lap => {
    const row = measured.find((one) => one.kind === kind && one.stages === 1)
    if (row === undefined) throw new Error(`the unsplit model was not measured in ${kind}`)
    return row
  }
  const inOneTab = unsplit('tabs')
  return measured.map((row) => {
    const { lapMs, computeMs } = unsplit(row.kind)
    return {
      ...row,
      ratio: inOneTab.lapMs / row.lapMs,
      ratioOfKind: lapMs / row.lapMs,
      ratioOwnCompute: lapMs / (row.lapMs - row.computeMs + computeMs),
    }
  })
}

export type Verdict = { readonly text: string; readonly met: boolean }

/** Whether the rings of tabs keep what is asked of them, in words. */
export function verdicts(rows: readonly RingRow[]): Verdict[] {
  const rings = rows.filter(({ kind, stages }) => kind === 'tabs' && stages > 1)
  const hopMs = Math.max(...rings.map((row) => row.hopMs))
  const pair = rings.find(({ stages }) => stages === 2)
  const verdict = (what: string, met: boolean): Verdict => ({
    text: `${what}: ${met ? 'met' : 'NOT met'}`,
    met,
  })
  return [
    verdict(`a hop costs ${hopMs.toFixed(2)} ms, at most ${HOP_MAX_MS}`, hopMs <= HOP_MAX_MS),
    ...(pair === undefined
      ? []
      : [
          verdict(
            `two tabs with processors of their own run at ${pair.ratioOwnCompute.toFixed(2)} of one, at least ${TWO_TABS_MIN}`,
            pair.ratioOwnCompute >= TWO_TABS_MIN,
          ),
        ]),
  ]
}

/** The least disturbed of the rounds: this machine has other things to do. */
function fastest(laps: readonly Lap[]): Lap {
  const [first] = [...laps].sort((a, b) => a.lapMs - b.lapMs)
  if (first === undefined) throw new Error('no lap was measured')
  return first
}

async function tabLaps(options: BenchOptions, stages: number): Promise<Lap[]> {
  const ring = await startRing({
    model: options.model,
    dataDir: options.dataDir,
    tabs: stages,
    provider: 'wasm',
    pledgeMb: 1_024,
  })
  try {
    await ring.complete()
    const { tokenizer } = await openModel(options.model, options.dataDir)
    const { started } = ring
    const asker = await openAsker({
      url: new URL(started.urls.join).origin,
      secret: started.secret,
      manifest: started.model.manifest,
      tokenizer,
    })
    const laps: Lap[] = []
    for (let round = 0; round < options.rounds; round += 1) {
      for await (const event of asker.client.generate({
        messages: MESSAGES,
        maxTokens: options.tokens,
      })) {
        if (event.kind !== 'end' || event.timings === null) continue
        const { lapMs, computeMs, hopMs } = event.timings
        laps.push({ lapMs, computeMs, hopMs })
      }
    }
    asker.close()
    return laps
  } finally {
    await ring.close()
  }
}

async function processLaps(options: BenchOptions, stages: number): Promise<Lap[]> {
  const model = await openModel(options.model, options.dataDir)
  const chain = await openChain(model, stages)
  const laps: Lap[] = []
  for (let round = 0; round < options.rounds; round += 1) {
    const answer = await chain.generate({
      prompt: model.tokenizer.encodeChat(MESSAGES),
      maxTokens: options.tokens,
      sampling: GREEDY,
    })
    const lapMs = (answer.totalMs - answer.firstTokenMs) / Math.max(answer.ids.length - 1, 1)
    const computeMs = answer.msPerStage.reduce((sum, ms) => sum + ms, 0)
    laps.push({
      lapMs,
      computeMs,
      hopMs: stages === 1 ? 0 : Math.max(0, lapMs - computeMs) / stages,
    })
  }
  await chain.close()
  return laps
}
