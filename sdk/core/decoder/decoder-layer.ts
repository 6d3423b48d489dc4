import type { GraphBuilder } from '../model/graph-builder.ts'
import { addAttention } from './attention.ts'
import type { Decoder, LayerSpec, Norm } from './decoder.ts'
import { addFeedForward } from './feed-forward.ts'
import type { Shared } from './shared.ts'

/** The residual stream between two parts: the sum so far and what is to be added to it. */
export type Stream = { readonly residual: string; readonly skip: string | null }

export type LayerParts = {
  readonly decoder: Decoder
  readonly layer: number
  readonly shared: Shared
  readonly stream: Stream
}

/** One decoder layer: attention and feed-forward, each after its norm. */
export function addLayer(builder: GraphBuilder, spec: LayerSpec, parts: LayerParts): Stream {
  const { decoder, layer, shared, stream } = parts
  const name = `/model/layers.${layer}`
  const before = addNorm(builder, `${name}/input_layernorm`, stream, spec.attentionNorm)
  const attention = { decoder, layer, attention: spec.attention, shared }
  const attended = addPostNorm(
    builder,
    `${name}/attention_post_norm`,
    addAttention(builder, before.normed, attention),
    spec.attentionPostNorm,
  )
  const feed = (input: string): string =>
    addPostNorm(
      builder,
      `${name}/feedforward_post_norm`,
      addFeedForward(builder, `${name}/mlp`, input, spec.feedForward),
      spec.feedForwardPostNorm,
    )
  const second = `${name}/post_attention_layernorm`
  if (spec.order === 'parallel') {
    const own = spec.feedForwardNorm
    const input = own ? builder.norm(`${second}/LayerNorm`, before.sum, own) : before.normed
    const both = builder.node('Add', `${name}/parallel/Add`, [attended, feed(input)])
    return { residual: before.sum, skip: both }
  }
  const middle = { residual: before.sum, skip: attended }
  const after = addNorm(builder, second, middle, spec.feedForwardNorm)
  return { residual: after.sum, skip: feed(after.normed) }
}

function addPostNorm(
  builder: GraphBuilder,
  name: string,
  value: string,
  norm: Norm | null,
): string {
  return norm === null ? value : builder.norm(`${name}/LayerNorm`, value, norm)
}

/** Adds what is pending to the stream and normalises; one fused node where that exists. */
export function addNorm(
  builder: GraphBuilder,
  name: string,
  { residual, skip }: Stream,
  norm: Norm,
): { normed: string; sum: string } {
  if (skip !== null && norm.kind === 'rms') {
    return builder.skipNorm(`${name}/SkipLayerNorm`, { residual, skip }, norm)
  }
  const sum = skip === null ? residual : builder.node('Add', `${name}/Add`, [residual, skip])
  return { normed: builder.norm(`${name}/LayerNorm`, sum, norm), sum }
}
