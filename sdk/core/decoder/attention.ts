import { float, int, type Attribute } from '../graph/graph.ts'
import { MICROSOFT, type GraphBuilder } from '../model/graph-builder.ts'
import type { AttentionSpec, Decoder, Norm, Projection } from './decoder.ts'
import type { Shared } from './shared.ts'

export type AttentionParts = {
  readonly decoder: Decoder
  readonly layer: number
  readonly attention: AttentionSpec
  readonly shared: Shared
}

/** The attention's contribution to the stream, [1, S, H]. */
export function addAttention(builder: GraphBuilder, input: string, parts: AttentionParts): string {
  const { decoder, layer, attention, shared } = parts
  const { headCount, kvHeadCount } = decoder
  const name = `/model/layers.${layer}/attn`
  const { query, key, value, headNorms, positions } = attention
  const project = (part: string, projection: Projection): string =>
    builder.linear(`${name}/${part}_proj/MatMul`, input, projection)
  const normed = (part: string, states: string, norm: Norm | undefined, heads: number): string => {
    if (norm === undefined) return states
    const scope = headNorms?.scope === 'head' ? { heads, size: decoder.headSize } : null
    return addHeadNorm(builder, `${name}/${part}_norm`, states, { norm, scope })
  }
  const fused = positions.kind === 'rope' && shared.fusesRotary(positions.rope)
  const rotated = (part: string, states: string, heads: number): string =>
    positions.kind === 'rope' && !fused
      ? builder.node(
          'RotaryEmbedding',
          `${name}/${part}_rotary/RotaryEmbedding`,
          [states, shared.firstPosition(), ...shared.rotaryTables(positions.rope)],
          { domain: MICROSOFT, attributes: rotaryAttributes(decoder, positions.rope.size, heads) },
        )
      : states
  const queries = normed('q', project('q', query), headNorms?.query, headCount)
  const keys = normed('k', project('k', key), headNorms?.key, kvHeadCount)
  const states = [rotated('q', queries, headCount), rotated('k', keys, kvHeadCount)]
  const past = [`past_key_values.${layer}.key`, `past_key_values.${layer}.value`]
  const tables = fused ? shared.rotaryTables(positions.rope) : []
  const bias = positions.kind === 'alibi' ? ['', '', '', shared.distanceBias(positions)] : []
  const attended = builder.node(
    'GroupQueryAttention',
    `${name}/GroupQueryAttention`,
    [
      ...states,
      project('v', value),
      ...past,
      shared.seqlens,
      shared.total,
      ...tables,
      // Rotary tables and position ids come before the bias.
      ...bias,
    ],
    {
      domain: MICROSOFT,
      attributes: attentionAttributes(decoder, attention, fused),
      outputs: [`${name}/output_0`, `present.${layer}.key`, `present.${layer}.value`],
    },
  )
  return builder.linear(`${name}/o_proj/MatMul`, attended, attention.output)
}

function attentionAttributes(
  { headCount, kvHeadCount }: Decoder,
  { scale, softcap, window }: AttentionSpec,
  rotates: boolean,
): Record<string, Attribute> {
  return {
    num_heads: int(headCount),
    kv_num_heads: int(kvHeadCount),
    scale: float(scale),
    do_rotary: int(rotates ? 1 : 0),
    rotary_interleaved: int(0),
    ...(softcap > 0 ? { softcap: float(softcap) } : {}),
    ...(window > 0 ? { local_window_size: int(window) } : {}),
  }
}

function rotaryAttributes(
  { headSize }: Decoder,
  size: number,
  heads: number,
): Record<string, Attribute> {
  return {
    interleaved: int(0),
    num_heads: int(heads),
    ...(size < headSize ? { rotary_embedding_dim: int(size) } : {}),
  }
}

/** A norm of queries or keys [1, S, heads × D]: of every head by itself, or of all at once. */
function addHeadNorm(
  builder: GraphBuilder,
  name: string,
  states: string,
  { norm, scope }: { norm: Norm; scope: { heads: number; size: number } | null },
): string {
  if (scope === null) return builder.norm(`${name}/LayerNorm`, states, norm)
  const { heads, size } = scope
  // A zero keeps the dimension.
  const apart = BigInt64Array.of(0n, 0n, BigInt(heads), BigInt(size))
  const shape = builder.constant(`const.heads_${heads}`, 'i64', [4], apart)
  const flat = builder.constant('const.flat', 'i64', [3], BigInt64Array.of(0n, 0n, -1n))
  const split = builder.node('Reshape', `${name}/Reshape_1`, [states, shape])
  const normed = builder.norm(`${name}/LayerNorm`, split, norm)
  return builder.node('Reshape', `${name}/Reshape_2`, [normed, flat])
}
