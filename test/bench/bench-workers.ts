import { GREEDY } from '../../sdk/core/sampling/params.ts'
import { openModel, type OpenedModel } from '../../sdk/index.node.ts'
import { readBlock } from '../../sdk/import/model-store.node.ts'
import { openLocalChain } from '../../sdk/local/local-chain.ts'
import { createNodeStageRunner } from '../../sdk/runtime/ort.node.ts'
import { openAsker } from '../support/asker.ts'
import { startRing } from '../support/ring.ts'
import type { BenchOptions, Lap, RingRow, Verdict } from './bench.ts'

/** A ring of worker processes may cost this much for each hop over the unsplit model in one process. */
const WORKER_HOP_MAX_MS = 2

export type WorkersRow = Omit<RingRow, 'kind' | 'ratioOfKind'> & {
  /** `unsplit`: one stage in one process; `workers`: each stage in a process of its own, over WebRTC on this machine. */
  readonly kind: 'unsplit' | 'workers'
  /** What a lap takes longer than an unsplit one, for each of its hops, ms. */
  readonly overHopMs: number
}

const WORKERS = 3
/** Asks for a long answer: the built-in models must not stop before the laps are counted. */
const MESSAGES = [{ role: 'user', content: 'Tell me a story about a cat and a boat.' }] as const

/** A ring of worker processes against the unsplit model in this process, each on one thread. */
export async function benchWorkers(
  options: Omit<BenchOptions, 'stages'>,
  say: (line: string) => void,
): Promise<WorkersRow[]> {
  const model = await openModel(options.model, options.dataDir)
  say('unsplit, in one process')
  const unsplit = await unsplitLap(model, options)
  say(`${WORKERS} worker processes`)
  const ring = await workersLap(model, options)
  return [
    { stages: 1, kind: 'unsplit', ...unsplit, ratio: 1, ratioOwnCompute: 1, overHopMs: 0 },
    {
      stages: WORKERS,
      kind: 'workers',
      ...ring,
      ratio: unsplit.lapMs / ring.lapMs,
      ratioOwnCompute: unsplit.lapMs / (ring.lapMs - ring.computeMs + unsplit.computeMs),
      overHopMs: (ring.lapMs - unsplit.lapMs) / WORKERS,
    },
  ]
}

/** Whether the ring keeps what is asked of it, in words. */
export function workerVerdicts(rows: readonly WorkersRow[]): Verdict[] {
  return rows
    .filter(({ kind }) => kind === 'workers')
    .map(({ overHopMs }) => {
      const met = overHopMs <= WORKER_HOP_MAX_MS
      const what = `a hop costs ${overHopMs.toFixed(2)} ms over the unsplit model, at most ${WORKER_HOP_MAX_MS}`
      return { text: `${what}: ${met ? 'met' : 'NOT met'}`, met }
    })
}

async function unsplitLap(model: OpenedModel, options: Omit<BenchOptions, 'stages'>): Promise<Lap> {
  const chain = await openLocalChain({
    manifest: model.manifest,
    stages: 1,
    makeRunner: () => createNodeStageRunner({ threads: 1 }),
    readBlock: (block) => readBlock(model.storeDir, model.manifest, block),
  })
  const meter = createLapMeter()
  for (let round = 0; round < options.rounds; round += 1) {
    const { msPerStage } = await chain.generate({
      prompt: model.tokenizer.encodeChat(MESSAGES),
      maxTokens: options.tokens,
      sampling: GREEDY,
      onToken: () => meter.token(),
    })
    meter.end(msPerStage[0] ?? 0)
  }
  await chain.close()
  return meter.lap(1)
}

async function workersLap(
  { manifest, tokenizer }: OpenedModel,
  options: Omit<BenchOptions, 'stages'>,
): Promise<Lap> {
  const ring = await startRing({
    model: options.model,
    dataDir: options.dataDir,
    tabs: 0,
    workers: WORKERS,
    pledgeMb: 1_024,
  })
  try {
    await ring.complete()
    const { started } = ring
    const url = new URL(started.urls.join).origin
    const asker = await openAsker({ url, secret: started.secret, manifest, tokenizer })
    const meter = createLapMeter()
    for (let round = 0; round < options.rounds; round += 1) {
      const request = { messages: MESSAGES, maxTokens: options.tokens }
      for await (const event of asker.client.generate(request)) {
        if (event.kind === 'delta') meter.token()
        if (event.kind === 'end') meter.end(event.timings?.computeMs ?? Number.NaN)
      }
    }
    asker.close()
    return meter.lap(WORKERS)
  } finally {
    await ring.close()
  }
}

/**
 * Laps as who asks sees them: the time from one token to the next. Their median says what a lap takes on a machine
 * that has other things to do now and then; a mean would say what those take.
 */
function createLapMeter() {
  const lapMs: number[] = []
  const computeMs: number[] = []
  let last: number | null = null
  return {
    token(): void {
      const now = performance.now()
      if (last !== null) lapMs.push(now - last)
      last = now
    },
    /** The end of an answer; `compute` of its mean lap, ms. */
    end(compute: number): void {
      computeMs.push(compute)
      last = null
    },
    lap(stages: number): Lap {
      const [lap, compute] = [median(lapMs), median(computeMs)]
      return {
        lapMs: lap,
        computeMs: compute,
        hopMs: stages === 1 ? 0 : Math.max(0, lap - compute) / stages,
      }
    },
  }
}

function median(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b)
  return sorted[Math.floor(sorted.length / 2)] ?? Number.NaN
}
