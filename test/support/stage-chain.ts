import type { SessionId } from '../../sdk/core/ids.ts'
import type { BlockRange } from '../../sdk/core/model/block-range.ts'
import type { Manifest } from '../../sdk/core/model/manifest.ts'
import { GREEDY } from '../../sdk/core/sampling/params.ts'
import type { OrtBackend } from '../../sdk/runtime/ort-backend.ts'
import { createOrtQueue } from '../../sdk/runtime/ort-queue.ts'
import { createStageEngine } from '../../sdk/runtime/stage-engine.ts'
import type { BlockBytes } from '../../sdk/runtime/stage-runner.ts'

/** Real stages in one process, one per range, that pass f32 hidden states. */
export type StageChain = {
  /** Greedy ids after the prompt, which goes in runs of `chunk` tokens. */
  readonly generate: (
    prompt: readonly number[],
    options: { readonly count: number; readonly chunk: number; readonly from?: number },
  ) => Promise<number[]>
  readonly close: () => Promise<void>
}

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

  const step = async (position: number, ids: readonly number[], last: boolean): Promise<number> => {
    let input: Parameters<(typeof stages)[number]['run']>[0]['input'] = {
      kind: 'tokens',
      ids: Int32Array.from(ids),
    }
    for (const stage of stages) {
      const wanted = last && stage === stages.at(-1) ? sample : null
      const output = await stage.run({ session, position, input, sample: wanted })
      if (output.kind === 'token') return output.sampled.token
      if (output.kind === 'nothing') return -1
      input = { kind: 'hidden', data: output.data }
    }
    throw new Error('the chain has no head')
  }
  return {
    generate: async (prompt, { count, chunk, from = 0 }) => {
      let token = -1
      for (let at = from; at < prompt.length; at += chunk) {
        const ids = prompt.slice(at, at + chunk)
        token = await step(at, ids, at + chunk >= prompt.length)
      }
      const ids = [token]
      while (ids.length < count && !manifest.eosTokenIds.includes(token)) {
        token = await step(prompt.length + ids.length - 1, [token], true)
        ids.push(token)
      }
      return ids
    },
    close: async () => {
      for (const stage of stages) await stage.close()
    },
  }
}
