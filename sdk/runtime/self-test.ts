import { CrowdError } from '../core/errors.ts'
import type { SessionId } from '../core/ids.ts'
import { philox2x32 } from '../core/sampling/random.ts'
import { referenceLayer } from './reference-layer.ts'
import type { StageEngine } from './stage-engine.ts'
import { createTinyModel, type TinyModel } from './tiny-model.ts'

/**
 * Token counts of the steps: a prefill that attention kernels treat as long, one token, a long chunk on top.
 * The third one is what small subgroups get wrong without an error.
 */
const STEPS = [40, 1, 33]
const TOLERANCE = 1e-4
/** Any id will do: the engine under test has no other sessions. */
const SESSION = 0 as SessionId

/**
 * Runs one small layer on the engine and compares with plain arithmetic. What passes may serve.
 * @throws CrowdError self-test-failed, and what the engine throws
 */
export async function selfTest(engine: StageEngine): Promise<void> {
  const model = createTinyModel({ layerCount: 1, seed: 7 })
  const { hiddenSize } = model.config
  const rows = STEPS.reduce((sum, count) => sum + count, 0)
  const hidden = testHidden(rows * hiddenSize)
  const expected = expectedOutput(model, hidden)

  await engine.setStage(model.manifest, { start: 1, end: 2 })
  await engine.loadBlock(1, await model.blockBytes(1))
  let position = 0
  for (const count of STEPS) {
    const data = hidden.slice(position * hiddenSize, (position + count) * hiddenSize)
    const output = await engine.run({
      session: SESSION,
      position,
      input: { kind: 'hidden', data },
      sample: null,
    })
    if (output.kind !== 'hidden') throw new CrowdError('internal', `a layer gave ${output.kind}`)
    const error = largestError(output.data, expected.subarray(position * hiddenSize))
    if (!(error <= TOLERANCE)) {
      throw new CrowdError(
        'self-test-failed',
        `${count} tokens at position ${position} are wrong by ${error.toPrecision(2)}`,
      )
    }
    position += count
  }
}

/** f32 in -1..1, the same everywhere. */
function testHidden(length: number): Float32Array<ArrayBuffer> {
  return Float32Array.from({ length }, (_, i) => philox2x32([i, 0], 3)[0] / 2 ** 31 - 1)
}

/** Largest difference, relative to the size of the values; NaN as soon as one of them is. */
function largestError(actual: Float32Array, expected: Float64Array): number {
  let largest = 0
  for (const [i, value] of actual.entries()) {
    const wanted = expected[i] ?? NaN
    const error = Math.abs(value - wanted) / Math.max(1, Math.abs(wanted))
    if (Number.isNaN(error)) return NaN
    largest = Math.max(largest, error)
  }
  return largest
}

function expectedOutput({ config, tensor }: TinyModel, hidden: Float32Array): Float64Array {
  const weight = (part: string): Float32Array => tensor(`model.layers.0.${part}.weight`)
  return referenceLayer(
    { ...config, ropeTheta: config.rope.theta },
    {
      inputNorm: weight('input_layernorm'),
      query: weight('self_attn.q_proj'),
      key: weight('self_attn.k_proj'),
      value: weight('self_attn.v_proj'),
      output: weight('self_attn.o_proj'),
      postNorm: weight('post_attention_layernorm'),
      gate: weight('mlp.gate_proj'),
      up: weight('mlp.up_proj'),
      down: weight('mlp.down_proj'),
    },
    hidden,
  )
}
