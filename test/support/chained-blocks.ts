import type * as Ort from 'onnxruntime-common'
import type { InferenceSession, Tensor } from 'onnxruntime-common'
import { writeOnnx } from '../../sdk/core/graph/onnx-writer.ts'
import { embeddingRows } from '../../sdk/core/model/embedding-table.ts'
import type { Decoder as ModelDecoder } from '../../sdk/core/decoder/decoder.ts'
import { lowerBlock } from '../../sdk/core/model/lower.ts'
import type { TestModel } from './models.ts'

/** The module of either package. */
export type OrtModule = Pick<typeof Ort, 'InferenceSession' | 'Tensor'>

/** What both sides of the comparison do: new tokens at a position in, logits [S, V] out. */
export type Decoder = {
  readonly step: (position: number, ids: readonly number[]) => Promise<Float32Array>
  readonly close: () => Promise<void>
}

export type WholeOptions = {
  /** Default 1. */
  readonly threads?: number
  /** Through the passes that blocks go through; default: as written. */
  readonly lowered?: boolean
}

/** The unsplit model: one session, a cache that grows by feeding `present` back. */
export async function openWhole(
  ort: OrtModule,
  model: TestModel,
  provider: 'cpu' | 'wasm',
  { threads = 1, lowered = false }: WholeOptions = {},
): Promise<Decoder> {
  const { decoder } = model
  const data = await model.whole.data()
  const graph = writeOnnx(model.whole.graph)
  // As written the runtime's own folding and kernels are the other side of the passes.
  const loaded = lowered
    ? lowerBlock({ graph, data }, provider)
    : { model: graph, externalData: [{ path: 'data', data }] }
  const session = await ort.InferenceSession.create(loaded.model, {
    ...sessionOptions(provider, threads),
    externalData: loaded.externalData,
  })
  let past: Record<string, Tensor> = {}
  let length = 0
  const empty = (): Record<string, Tensor> =>
    Object.fromEntries(
      Array.from({ length: decoder.layers.length }, (_, layer) =>
        ['key', 'value'].map((part): [string, Tensor] => [
          `past_key_values.${layer}.${part}`,
          new ort.Tensor('float32', new Float32Array(0), [
            1,
            decoder.kvHeadCount,
            0,
            decoder.headSize,
          ]),
        ]),
      ).flat(),
    )
  return {
    step: async (position, ids) => {
      if (position === 0) past = empty()
      else if (position !== length) throw new Error('the whole model can only go on or start anew')
      length = position + ids.length
      const outputs = await session.run({
        input_ids: new ort.Tensor('int64', BigInt64Array.from(ids, BigInt), [1, ids.length]),
        attention_mask: new ort.Tensor('int64', new BigInt64Array(length).fill(1n), [1, length]),
        ...past,
      })
      past = Object.fromEntries(
        Object.entries(outputs)
          .filter(([name]) => name.startsWith('present.'))
          .map(([name, tensor]) => [name.replace('present.', 'past_key_values.'), tensor]),
      )
      return floatsOf(outputs['logits'])
    },
    close: () => session.release(),
  }
}

/** Sessions of all blocks, which chains with other cuts may share, one at a time. */
export type BlockSessions = {
  /**
   * The blocks one after another, each with a cache of fixed capacity that is cut to the position of the
   * step. At `cuts` the hidden state crosses a border: it's copied out, checked and copied in. Closing it closes nothing.
   */
  readonly chain: (options: ChainOptions) => Decoder
  readonly close: () => Promise<void>
}

export type ChainOptions = {
  readonly cuts: readonly number[]
  /** Sees the hidden state [S, H] before each block. */
  readonly onHidden?: (block: number, hidden: Float32Array) => void
}

type SessionsOptions = {
  readonly provider: 'cpu' | 'wasm'
  /** Of each session; default 1. */
  readonly threads?: number
}

/** One chain of its own. */
export async function openChain(
  ort: OrtModule,
  model: TestModel,
  options: SessionsOptions & ChainOptions,
): Promise<Decoder> {
  const sessions = await openBlocks(ort, model, options)
  return { ...sessions.chain(options), close: sessions.close }
}

export async function openBlocks(
  ort: OrtModule,
  model: TestModel,
  { provider, threads = 1 }: SessionsOptions,
): Promise<BlockSessions> {
  const { decoder, plans } = model
  const table = plans[0]?.table
  if (!table) throw new Error('the embedding has no table')
  const tableData = await model.blockBytes(0)
  const sessions: InferenceSession[] = []
  for (const [i, plan] of plans.entries()) {
    if (plan.graph === null) continue
    const block = { graph: plan.graph, data: await model.blockBytes(i) }
    const { model: bytes, externalData } = lowerBlock(block, provider)
    const settings = { ...sessionOptions(provider, threads), externalData }
    sessions.push(await ort.InferenceSession.create(bytes, settings))
  }
  const embed = (ids: readonly number[]): Float32Array<ArrayBuffer> =>
    embeddingRows(table, tableData, Int32Array.from(ids))
  return {
    chain: (options) => createChain(ort, { decoder, embed, sessions }, options),
    close: async () => {
      for (const session of sessions) await session.release()
    },
  }
}

type ChainParts = {
  readonly decoder: ModelDecoder
  readonly embed: (ids: readonly number[]) => Float32Array<ArrayBuffer>
  readonly sessions: readonly InferenceSession[]
}

function createChain(
  ort: OrtModule,
  { decoder, embed, sessions }: ChainParts,
  options: ChainOptions,
): Decoder {
  const caches = Array.from({ length: decoder.layers.length }, () => createCache(ort, decoder))
  return {
    step: async (position, ids) => {
      let hidden = embed(ids)
      for (const [i, session] of sessions.entries()) {
        // Blocks are numbered from the embedding, sessions from the first layer.
        options.onHidden?.(i + 1, hidden)
        if (options.cuts.includes(i + 1)) hidden = crossBorder(hidden, ids.length, decoder)
        const input = new ort.Tensor('float32', hidden, [1, ids.length, decoder.hiddenSize])
        const cache = caches[i]
        if (!cache) return floatsOf((await session.run({ hidden: input }))['logits'])
        const outputs = await session.run({ hidden: input, ...cache.feeds(position, ids.length) })
        cache.append(outputs, position, ids.length)
        hidden = floatsOf(outputs['hidden_out'])
      }
      throw new Error('the chain has no head')
    },
    close: () => Promise.resolve(),
  }
}

function sessionOptions(
  provider: 'cpu' | 'wasm',
  threads: number,
): InferenceSession.SessionOptions {
  return {
    executionProviders: [provider],
    intraOpNumThreads: threads,
    logSeverityLevel: 3,
    // Threads of several sessions that wait by spinning take the cores from the one that computes.
    ...(threads > 1 ? { extra: { session: { intra_op: { allow_spinning: '0' } } } } : {}),
  }
}

export function floatsOf(tensor: Tensor | undefined): Float32Array<ArrayBuffer> {
  if (!(tensor?.data instanceof Float32Array)) throw new Error('no f32 output')
  return tensor.data.slice()
}

function crossBorder(
  hidden: Float32Array<ArrayBuffer>,
  tokens: number,
  decoder: ModelDecoder,
): Float32Array<ArrayBuffer> {
  if (hidden.length !== tokens * decoder.hiddenSize || !hidden.every(Number.isFinite)) {
    throw new Error('the border tensor is malformed')
  }
  return hidden.slice()
}

type CacheShape = Pick<ModelDecoder, 'kvHeadCount' | 'headSize' | 'contextLength'>

type Cache = {
  readonly feeds: (position: number, tokens: number) => Record<string, Tensor>
  readonly append: (
    outputs: InferenceSession.OnnxValueMapType,
    position: number,
    tokens: number,
  ) => void
}

export function createCache(ort: OrtModule, config: CacheShape): Cache {
  const { kvHeadCount: heads, headSize: size, contextLength: capacity } = config
  // Filled with garbage: what lies after the position must not matter.
  const parts = ['key', 'value'].map((name) => ({
    name,
    rows: new Float32Array(heads * capacity * size).fill(1e3),
  }))
  return {
    feeds: (position, tokens) => {
      const total = position + tokens
      const dims = [1, heads, capacity, size]
      return {
        ...Object.fromEntries(
          parts.map(({ name, rows }) => [`past.${name}`, new ort.Tensor('float32', rows, dims)]),
        ),
        seqlens_k: new ort.Tensor('int32', Int32Array.of(total - 1), [1]),
        total_sequence_length: new ort.Tensor('int32', Int32Array.of(total), []),
      }
    },
    append: (outputs, position, tokens) => {
      for (const { name, rows } of parts) {
        const fresh = floatsOf(outputs[`new.${name}`])
        for (let head = 0; head < heads; head++) {
          const run = fresh.subarray(head * tokens * size, (head + 1) * tokens * size)
          rows.set(run, (head * capacity + position) * size)
        }
      }
    },
  }
}

/** Greedy continuation; the prompt goes in runs of `chunk` tokens. Returns ids and all logits of them. */
export async function greedy(
  decoder: Decoder,
  prompt: readonly number[],
  options: { readonly count: number; readonly chunk: number; readonly vocabSize: number },
): Promise<{ ids: number[]; logits: Float32Array[] }> {
  const { count, chunk, vocabSize } = options
  let last = new Float32Array()
  for (let at = 0; at < prompt.length; at += chunk) {
    const all = await decoder.step(at, prompt.slice(at, at + chunk))
    last = all.slice(-vocabSize)
  }
  const ids: number[] = []
  const logits: Float32Array[] = []
  while (ids.length < count) {
    logits.push(last)
    const best = last.indexOf(Math.max(...last))
    ids.push(best)
    if (ids.length === count) break
    last = (await decoder.step(prompt.length + ids.length - 1, [best])).slice(-vocabSize)
  }
  return { ids, logits }
}

/** Largest absolute difference. */
export function worstDifference(a: readonly Float32Array[], b: readonly Float32Array[]): number {
  let worst = a.length === b.length ? 0 : Infinity
  a.forEach((row, i) => {
    const other = b[i]
    row.forEach((value, j) => {
      worst = Math.max(worst, Math.abs(value - (other?.[j] ?? NaN)) || 0)
      if (Number.isNaN(other?.[j] ?? NaN)) worst = Infinity
    })
  })
  return worst
}
