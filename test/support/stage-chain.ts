import type { SessionId } from '../../sdk/core/ids.ts'
import type { BlockRange } from '../../sdk/core/model/block-range.ts'
import type { Manifest } from '../../sdk/core/model/manifest.ts'
import { GREEDY, type SampledToken } from '../../sdk/core/sampling/params.ts'
import { decodeFrame, encodeFrame } from '../../sdk/core/wire/frame.ts'
import type { OrtBackend } from '../../sdk/runtime/ort-backend.ts'
import { createOrtQueue } from '../../sdk/runtime/ort-queue.ts'
import { createStageEngine } from '../../sdk/runtime/stage-engine.ts'
import type { BlockBytes, StageStep } from '../../sdk/runtime/stage-runner.ts'

/** Real stages in one process, one per range, that pass hidden states as the bytes of frames. */
export type StageChain = {
  /** Greedy ids after the prompt, which goes in runs of `chunk` tokens. */
  readonly generate: (
    prompt: readonly number[],
    options: { readonly count: number; readonly chunk: number; readonly from?: number },
  ) => Promise<number[]>
  /** The same, with the log-probability of each id. */
  readonly sample: (...args: Parameters<StageChain['generate']>) => Promise<SampledToken[]>
  readonly close: () => Promise<void>
}

type Input = StageStep['input']

export async function openStageChain(
  backend: OrtBackend,
  manifest: Manifest,
  options: {
    readonly ranges: readonly BlockRange[]
    readonly readBlock: (block: number) => Promise<BlockBytes>
  },
): Promise<StageChain> {
  const queue = createOrtQueue()
  const stages = options.ranges.map(() => createStageEngine({ backend, queue }))
  for (const [i, stage] of stages.entries()) {
    const range = options.ranges[i] ?? { start: 0, end: 0 }
    for (const block of await stage.setStage(manifest, range)) {
      await stage.loadBlock(block, await options.readBlock(block))
    }
  }
  // Cast: any number names a session here.
  const session = 1 as SessionId
  const sample = { params: GREEDY, history: new Int32Array(), promptLength: 0 }

  /** What the next stage takes of an activation that came over a wire. */
  const cross = (data: Float32Array, position: number): Input => {
    const { hiddenSize } = manifest
    const tokenCount = data.length / hiddenSize
    const head = { session, epoch: 1, step: 1, position, computeMicros: 0 }
    const shape = { kind: 'activation', tokenCount, hiddenSize, sample: false } as const
    const bytes = encodeFrame({ ...head, ...shape, data })
    // Nothing of the sender's memory is left but the bytes.
    data.fill(NaN)
    const frame = decodeFrame(bytes, { hiddenSize, maxTokens: tokenCount })
    if (frame.kind !== 'activation' || frame.position !== position) throw new Error('another frame')
    return { kind: 'hidden', data: frame.data }
  }

  const step = async (
    position: number,
    ids: readonly number[],
    last: boolean,
  ): Promise<SampledToken | null> => {
    let input: Input = { kind: 'tokens', ids: Int32Array.from(ids) }
    for (const stage of stages) {
      const wanted = last && stage === stages.at(-1) ? sample : null
      const output = await stage.run({ session, position, input, sample: wanted })
      if (output.kind === 'token') return output.sampled
      if (output.kind === 'nothing') return null
      input = cross(output.data, position)
    }
    throw new Error('the chain has no head')
  }

  const generate: StageChain['sample'] = async (prompt, { count, chunk, from = 0 }) => {
    const chosen: SampledToken[] = []
    for (let at = from; at < prompt.length; at += chunk) {
      const last = at + chunk >= prompt.length
      const sampled = await step(at, prompt.slice(at, at + chunk), last)
      if (sampled !== null) chosen.push(sampled)
    }
    for (;;) {
      const token = chosen.at(-1)?.token ?? -1
      if (chosen.length >= count || manifest.eosTokenIds.includes(token)) return chosen
      const sampled = await step(prompt.length + chosen.length - 1, [token], true)
      if (sampled === null) throw new Error('no token was chosen')
      chosen.push(sampled)
    }
  }

  return {
    sample: generate,
    generate: async (...args) => (await generate(...args)).map(({ token }) => token),
    close: async () => {
      for (const stage of stages) await stage.close()
    },
  }
}
