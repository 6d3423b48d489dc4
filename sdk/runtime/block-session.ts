import type { InferenceSession, Tensor } from 'onnxruntime-common'
import { CrowdError } from '../core/errors.ts'
import { lowerBlock, type LoweredBlock } from '../core/model/lower.ts'
import type { KvCache } from './kv-cache.ts'
import type { OrtBackend } from './ort-backend.ts'
import { runtimeError } from './runtime-error.ts'

/** A layer or head that is loaded into the provider. Calls must go through the realm's queue. */
export type BlockSession = {
  readonly kv: LoweredBlock['kv']
  /** Layer: hidden [1, S, H] at `position` to hidden [1, S, H]; the cache gets S more rows. */
  runLayer(hidden: Tensor, cache: KvCache, position: number): Promise<Tensor>
  /** Head: hidden [1, 1, H] to logits f32 [V]. */
  runHead(hidden: Tensor): Promise<Float32Array>
  release(): Promise<void>
}

/**
 * Lowers a block for the provider and makes its session.
 * @throws CrowdError model-invalid, model-unsupported, out-of-memory
 */
export async function createBlockSession(
  backend: OrtBackend,
  block: { readonly graph: Uint8Array; readonly data: Uint8Array },
): Promise<BlockSession> {
  const caches = backend.device === null ? 'delta' : 'shared'
  const lowered = lowerBlock(block, backend.report.provider, caches)
  const session = await createSession(backend, lowered)
  const { Tensor: TensorOf } = backend.ort

  async function runLayer(hidden: Tensor, cache: KvCache, position: number): Promise<Tensor> {
    const count = hidden.dims[1] ?? 0
    const total = position + count
    cache.reserve(total, position)
    const feeds = {
      hidden,
      ...cache.feeds(),
      seqlens_k: new TensorOf('int32', Int32Array.of(total - 1), [1]),
      total_sequence_length: new TensorOf('int32', Int32Array.of(total), []),
    }
    const fetches = cache.fetches()
    const outputs =
      lowered.kv === 'shared'
        ? await session.run(feeds, { hidden_out: null, ...fetches })
        : await session.run(feeds)
    cache.append(outputs, position, count)
    return required(outputs['hidden_out'], 'hidden_out')
  }

  async function runHead(hidden: Tensor): Promise<Float32Array> {
    const outputs = await session.run({ hidden })
    return readFloats(required(outputs['logits'], 'logits'))
  }

  return { kv: lowered.kv, runLayer, runHead, release: () => session.release() }
}

async function createSession(
  backend: OrtBackend,
  lowered: LoweredBlock,
): Promise<InferenceSession> {
  const options: InferenceSession.SessionOptions = {
    ...withCpuNodes(backend.sessionOptions, lowered.cpuNodes),
    externalData: lowered.externalData,
    // Between two layers on a GPU the hidden state need not come back.
    ...(lowered.kv === 'shared' ? { preferredOutputLocation: SHARED_OUTPUTS } : {}),
  }
  try {
    return await backend.ort.InferenceSession.create(lowered.model, options)
  } catch (thrown) {
    throw runtimeError(thrown, 'a block could not be loaded', 'model-invalid')
  }
}

function withCpuNodes(
  options: InferenceSession.SessionOptions,
  names: readonly string[],
): InferenceSession.SessionOptions {
  if (names.length === 0) return options
  const providers = (options.executionProviders ?? []).map((provider) => {
    const named = typeof provider === 'string' ? { name: provider } : provider
    return named.name === 'webgpu' ? { ...named, forceCpuNodeNames: names } : provider
  })
  return { ...options, executionProviders: providers }
}

const SHARED_OUTPUTS = {
  hidden_out: 'gpu-buffer',
  'present.key': 'gpu-buffer',
  'present.value': 'gpu-buffer',
} as const

function required(tensor: Tensor | undefined, name: string): Tensor {
  if (tensor === undefined) throw new CrowdError('model-invalid', `a block has no output ${name}`)
  return tensor
}

/** The values of an f32 tensor, wherever they lie; the tensor is used up. */
export async function readFloats(tensor: Tensor): Promise<Float32Array> {
  const data = tensor.location === 'cpu' ? tensor.data : await tensor.getData()
  if (!(data instanceof Float32Array)) {
    throw new CrowdError('model-invalid', `a block gives ${tensor.type}, expected float32`)
  }
  tensor.dispose()
  return data
}
