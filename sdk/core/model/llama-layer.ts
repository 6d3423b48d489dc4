import { float, int } from '../graph/graph.ts'
import { MICROSOFT, type GraphBuilder } from './graph-builder.ts'
import type { LlamaConfig } from './llama-config.ts'

/** Values that every layer reads. `position` is null where the attention rotates by itself. */
export type Shared = {
  readonly seqlens: string
  readonly total: string
  readonly cos: string
  readonly sin: string
  readonly position: string | null
}

/** The residual stream between two fused nodes: the sum so far and what is to be added to it. */
export type Stream = { readonly residual: string; readonly skip: string | null }

export type LayerParts = {
  readonly config: LlamaConfig
  readonly layer: number
  readonly shared: Shared
  readonly stream: Stream
}

/** One decoder layer: attention, then the gated MLP, each after a norm. */
export function addLayer(builder: GraphBuilder, parts: LayerParts): Stream {
  const { config, layer } = parts
  const { hiddenSize: hidden, intermediateSize: inner } = config
  const name = `/model/layers.${layer}`
  const source = `model.layers.${layer}`
  const before = addNorm(builder, `${name}/input_layernorm`, parts.stream, {
    source: `${source}.input_layernorm.weight`,
    size: hidden,
  })
  const attention = addAttention(builder, before.normed, parts)
  const middle = { residual: before.sum, skip: attention }
  const after = addNorm(builder, `${name}/post_attention_layernorm`, middle, {
    source: `${source}.post_attention_layernorm.weight`,
    size: hidden,
  })
  const project = (part: string, input: string, rows: number, columns: number): string =>
    builder.linear(`${name}/mlp/${part}/MatMul`, input, {
      source: `${source}.mlp.${part}.weight`,
      rows,
      columns,
    })
  const gate = project('gate_proj', after.normed, inner, hidden)
  const up = project('up_proj', after.normed, inner, hidden)
  const sigmoid = builder.node('Sigmoid', `${name}/mlp/act_fn/Sigmoid`, [gate])
  const silu = builder.node('Mul', `${name}/mlp/act_fn/Mul`, [gate, sigmoid])
  const gated = builder.node('Mul', `${name}/mlp/Mul`, [silu, up])
  return { residual: after.sum, skip: project('down_proj', gated, hidden, inner) }
}

/** Adds what is pending to the stream and normalises; one fused node where something is pending. */
export function addNorm(
  builder: GraphBuilder,
  name: string,
  stream: Stream,
  weight: { source: string; size: number },
): { normed: string; sum: string } {
  const scale = builder.weight(weight.source, [weight.size], {
    source: weight.source,
    rows: 1,
    columns: weight.size,
    form: 'rows',
    type: 'f32',
  })
  const { residual, skip } = stream
  if (skip === null) {
    return { normed: builder.rmsNorm(`${name}/LayerNorm`, residual, scale), sum: residual }
  }
  return builder.skipNorm(`${name}/SkipLayerNorm`, [residual, skip, scale])
}

/** The attention's contribution to the stream, [1, S, H]. */
function addAttention(builder: GraphBuilder, input: string, parts: LayerParts): string {
  const { config, layer, shared } = parts
  const { headSize, headCount, kvHeadCount, hiddenSize } = config
  const name = `/model/layers.${layer}/attn`
  const source = `model.layers.${layer}.self_attn`
  const project = (part: string, heads: number): string =>
    builder.linear(`${name}/${part}/MatMul`, input, {
      source: `${source}.${part}.weight`,
      rows: heads * headSize,
      columns: hiddenSize,
    })
  const rotate = (value: string, part: string, heads: number): string =>
    shared.position === null
      ? value
      : builder.node(
          'RotaryEmbedding',
          `${name}/${part}_rotary/RotaryEmbedding`,
          [value, shared.position, shared.cos, shared.sin],
          { domain: MICROSOFT, attributes: { interleaved: int(0), num_heads: int(heads) } },
        )
  const query = rotate(project('q_proj', headCount), 'q', headCount)
  const key = rotate(project('k_proj', kvHeadCount), 'k', kvHeadCount)
  const value = project('v_proj', kvHeadCount)
  const past = [`past_key_values.${layer}.key`, `past_key_values.${layer}.value`]
  const tables = shared.position === null ? [shared.cos, shared.sin] : []
  const attended = builder.node(
    'GroupQueryAttention',
    `${name}/GroupQueryAttention`,
    [query, key, value, ...past, shared.seqlens, shared.total, ...tables],
    {
      domain: MICROSOFT,
      attributes: {
        num_heads: int(headCount),
        kv_num_heads: int(kvHeadCount),
        scale: float(1 / Math.sqrt(headSize)),
        do_rotary: int(shared.position === null ? 1 : 0),
        rotary_interleaved: int(0),
      },
      outputs: [`${name}/output_0`, `present.${layer}.key`, `present.${layer}.value`],
    },
  )
  return builder.linear(`${name}/o_proj/MatMul`, attended, {
    source: `${source}.o_proj.weight`,
    rows: hiddenSize,
    columns: headCount * headSize,
  })
}
