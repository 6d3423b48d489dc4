import { CrowdError } from '../core/errors.ts'
import type { SessionId } from '../core/ids.ts'
import { GREEDY, type SampledToken } from '../core/sampling/params.ts'
import { philox2x32 } from '../core/sampling/random.ts'
import { referenceHead, referenceLayer } from './reference-layer.ts'
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
 * Runs one small layer and one small head on the engine and compares with plain arithmetic. What passes may serve.
 * @throws CrowdError self-test-failed, and what the engine throws
 */
export async function selfTest(engine: StageEngine): Promise<void> {
  const model = createTinyModel({ layerCount: 1, seed: 7 })
  await testLayer(engine, model)
  await testHead(engine, model)
}

async function testLayer(engine: StageEngine, model: TinyModel): Promise<void> {
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

/** The head gives no logits out, only what was chosen: the best token and its log-probability. */
async function testHead(engine: StageEngine, model: TinyModel): Promise<void> {
  const hidden = testHidden(model.config.hiddenSize)
  const norm = model.tensor('model.norm.weight')
  const head = model.tensor('model.embed_tokens.weight')
  const expected = best(referenceHead(model.config, { norm, head }, hidden))

  await engine.setStage(model.manifest, { start: 2, end: 3 })
  await engine.loadBlock(2, await model.blockBytes(2))
  const output = await engine.run({
    session: SESSION,
    position: 0,
    input: { kind: 'hidden', data: hidden },
    sample: { params: GREEDY, history: new Int32Array(), promptLength: 0 },
  })
  if (output.kind !== 'token') throw new CrowdError('internal', `a head gave ${output.kind}`)
  const { token, logprob } = output.sampled
  const error = Math.abs(logprob - expected.logprob)
  if (token !== expected.token || !(error <= TOLERANCE)) {
    throw new CrowdError(
      'self-test-failed',
      `the head chose ${token} instead of ${expected.token}, wrong by ${error.toPrecision(2)}`,
    )
  }
}

function best(logits: Float64Array): Pick<SampledToken, 'token' | 'logprob'> {
  const top = Math.max(...logits)
  const sum = logits.reduce((total, logit) => total + Math.exp(logit - top), 0)
  return { token: logits.indexOf(top), logprob: -Math.log(sum) }
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
