import type { SessionId } from '../../sdk/core/ids.ts'
import { PREFILL_CHUNK_TOKENS } from '../../sdk/core/limits.ts'
import { prefillChunks } from '../../sdk/core/model/prefill-chunks.ts'
import type { Manifest } from '../../sdk/core/model/manifest.ts'
import { needsHistory, type SamplingParams } from '../../sdk/core/sampling/params.ts'
import { createFakeStageRunner } from '../support/fake-stage-runner.ts'

export type Question = {
  readonly prompt: readonly number[]
  readonly maxTokens: number
  readonly sampling: SamplingParams
}

/** What the model says when it is not split and nothing disturbs it. */
export type Unsplit = { answer(question: Question): Promise<number[]> }

export async function openUnsplit(manifest: Manifest): Promise<Unsplit> {
  const runner = createFakeStageRunner()
  await runner.start()
  const wanted = await runner.setStage(manifest, { start: 0, end: manifest.blocks.length })
  for (const block of wanted) {
    const data = new Uint8Array(manifest.blocks[block]?.dataBytes ?? 0)
    await runner.loadBlock(block, { graph: null, data })
  }
  // Cast: any number names a session here.
  const session = 1 as SessionId
  const stops = new Set(manifest.eosTokenIds)

  return {
    async answer({ prompt, maxTokens, sampling }) {
      const answer: number[] = []
      const limit = Math.min(maxTokens, manifest.contextLength - prompt.length)

      async function step(position: number, ids: Int32Array, last: boolean): Promise<void> {
        const history = needsHistory(sampling) ? [...prompt, ...answer] : []
        const sample = {
          params: sampling,
          history: Int32Array.from(history),
          promptLength: prompt.length,
        }
        const input = { kind: 'tokens' as const, ids }
        const output = await runner.run({ session, position, input, sample: last ? sample : null })
        if (output.kind === 'token') answer.push(output.sampled.token)
      }

      for (const { position, ids, last } of prefillChunks(prompt, PREFILL_CHUNK_TOKENS))
        await step(position, ids, last)
      for (let token = answer.at(-1); token !== undefined; token = answer.at(-1)) {
        if (answer.length >= limit || stops.has(token)) break
        await step(prompt.length + answer.length - 1, Int32Array.of(token), true)
      }
      await runner.release(session)
      return answer
    },
  }
}
