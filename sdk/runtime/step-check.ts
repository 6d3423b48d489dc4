import { CrowdError } from '../core/errors.ts'
import type { BlockRange } from '../core/model/block-range.ts'
import type { Manifest } from '../core/model/manifest.ts'
import { requireFinite } from './finite.ts'
import type { StageStep } from './stage-runner.ts'

/** A range that a stage can have, the empty one included. @throws CrowdError bad-request, model-invalid */
export function checkRange(manifest: Manifest, range: BlockRange): void {
  const blocks = manifest.layerCount + 2
  if (manifest.blocks.length !== blocks) {
    throw new CrowdError('model-invalid', `${manifest.blocks.length} blocks listed, not ${blocks}`)
  }
  const { start, end } = range
  const isWhole = Number.isSafeInteger(start) && Number.isSafeInteger(end)
  if (!isWhole || start < 0 || end < start || end > blocks) {
    throw new CrowdError('bad-request', `blocks ${start} to ${end} are not in 0 to ${blocks}`)
  }
}

/**
 * How many tokens a step brings, once it fits this stage.
 * @throws CrowdError bad-frame, non-finite, prompt-too-long, stage-failed (an empty range)
 */
export function checkStep(manifest: Manifest, range: BlockRange, step: StageStep): number {
  const { position, input } = step
  if (range.start === range.end) throw new CrowdError('stage-failed', 'this device holds no blocks')
  const wanted = range.start === 0 ? 'tokens' : 'hidden'
  if (input.kind !== wanted) {
    throw new CrowdError('bad-frame', `this stage takes ${wanted}, not ${input.kind}`)
  }
  const width = manifest.hiddenSize
  const count = input.kind === 'tokens' ? input.ids.length : input.data.length / width
  if (count < 1 || !Number.isInteger(count)) {
    const size = input.kind === 'tokens' ? count : input.data.length
    throw new CrowdError('bad-frame', `${size} values are not rows of ${width}`)
  }
  if (!Number.isSafeInteger(position) || position < 0) {
    throw new CrowdError('bad-frame', `${position} is not a position`)
  }
  if (position + count > manifest.contextLength) {
    throw new CrowdError(
      'prompt-too-long',
      `${position + count} tokens, but the model's context is ${manifest.contextLength}`,
    )
  }
  if (input.kind === 'hidden') requireFinite(input.data, 'the activation that came in')
  else checkIds(input.ids, manifest.vocabSize)
  return count
}

function checkIds(ids: Int32Array, vocabSize: number): void {
  for (const id of ids) {
    if (id < 0 || id >= vocabSize) {
      throw new CrowdError('bad-frame', `token ${id} is outside the vocabulary of ${vocabSize}`)
    }
  }
}
