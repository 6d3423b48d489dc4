import { int } from '../graph/graph.ts'
import { TYPE_CODES } from '../graph/onnx-format.ts'
import type { GraphBuilder } from '../model/graph-builder.ts'
import { addDistanceBias } from './alibi.ts'
import type { AlibiScheme, Decoder } from './decoder.ts'
import { attentionFactor, inverseFrequencies, type RopeParams } from './rope.ts'

/** Values that follow from lengths alone and that layers read; each is made when first asked for. */
export type Shared = {
  /** i32 [1]: tokens with the new ones, less one. */
  readonly seqlens: string
  /** i32 []: tokens with the new ones. */
  readonly total: string
  /** Whether the attention rotates by itself. */
  readonly fusesRotary: (rope: RopeParams) => boolean
  /** Cosines and sines, f32 [context, size / 2] each. */
  readonly rotaryTables: (rope: RopeParams) => [cos: string, sin: string]
  /** i64 [1]: the position of the first new token. */
  readonly firstPosition: () => string
  /** i64 [S]: positions of the new tokens, `offset` further on. */
  readonly positions: (offset: number) => string
  /** f32 [1, heads, S, T], ALiBi: slope × position of the key × scale. */
  readonly distanceBias: (scheme: AlibiScheme) => string
}

export function addShared(builder: GraphBuilder, decoder: Decoder): Shared {
  const { node, constant } = builder
  const mask = '/model/attn_mask_reformat'
  const one = constant('const.one', 'i64', [], BigInt64Array.of(1n))
  const axis = constant('const.axis_1', 'i64', [1], BigInt64Array.of(1n))
  const count = node('ReduceSum', `${mask}/ReduceSum`, ['attention_mask', axis], {
    attributes: { keepdims: int(0) },
  })
  const last = node('Sub', `${mask}/Sub`, [count, one])
  const toInt32 = { attributes: { to: int(TYPE_CODES.i32) } }
  const seqlens = node('Cast', `${mask}/Sub/Cast`, [last], toInt32)
  const maskShape = node('Shape', `${mask}/Shape`, ['attention_mask'])
  const length = node('Gather', `${mask}/Gather`, [maskShape, one])
  const total = node('Cast', `${mask}/Gather/Cast`, [length], toInt32)

  const lengths = once(() => addLengths(builder, total, one))
  const firstPosition = once(() => {
    const zero = constant('const.axis_0', 'i64', [1], BigInt64Array.of(0n))
    return node('Unsqueeze', '/model/position/Unsqueeze', [lengths().past, zero])
  })
  const tables: { readonly rope: RopeParams; readonly names: [string, string] }[] = []
  const biases = new Map<string, string>()
  return {
    seqlens,
    total,
    fusesRotary: (rope) => fusesRotary(decoder, rope),
    rotaryTables: (rope) => {
      const known = tables.find((entry) => JSON.stringify(entry.rope) === JSON.stringify(rope))
      if (known) return known.names
      const names = addRotaryTables(builder, { decoder, rope, index: tables.length })
      tables.push({ rope, names })
      return names
    },
    firstPosition,
    positions: (offset) => {
      const { past, total: end } = lengths()
      const range = node('Range', '/model/position/Range', [past, end, one])
      if (offset === 0) return range
      const added = constant('position.offset', 'i64', [], BigInt64Array.of(BigInt(offset)))
      return node('Add', '/model/position/Add', [range, added])
    },
    distanceBias: (scheme) => {
      const key = JSON.stringify(scheme)
      const made = biases.get(key)
      const bias =
        made ?? addDistanceBias(builder, { headCount: decoder.headCount, scheme, ...lengths() })
      biases.set(key, bias)
      return bias
    },
  }
}

function once<T>(make: () => T): () => T {
  let made: { readonly value: T } | null = null
  return () => (made ??= { value: make() }).value
}

/** GroupQueryAttention rotates by itself only multiples of 16. */
function fusesRotary({ headSize }: Decoder, { size }: RopeParams): boolean {
  return headSize % 16 === 0 && size % 16 === 0
}

/** i64 []: new tokens, all tokens, and their difference. */
type Lengths = { readonly tokens: string; readonly total: string; readonly past: string }

function addLengths({ node }: GraphBuilder, total: string, one: string): Lengths {
  const shape = node('Shape', '/model/position/Shape', ['input_ids'])
  const tokens = node('Gather', '/model/position/Gather', [shape, one])
  const end = node('Cast', '/model/position/Cast', [total], {
    attributes: { to: int(TYPE_CODES.i64) },
  })
  return { tokens, total: end, past: node('Sub', '/model/position/Sub', [end, tokens]) }
}

/** Computed from a few numbers: a stored table would be downloaded by every stage. */
function addRotaryTables(
  { node, constant }: GraphBuilder,
  { decoder, rope, index }: { decoder: Decoder; rope: RopeParams; index: number },
): [cos: string, sin: string] {
  const mark = index === 0 ? '' : `_${index}`
  const start = constant('rope.start', 'f32', [], Float32Array.of(0))
  const limit = constant('rope.limit', 'f32', [], Float32Array.of(decoder.contextLength))
  const step = constant('rope.step', 'f32', [], Float32Array.of(1))
  const frequencies = inverseFrequencies(rope)
  const inverse = constant(`rope.inv_freq${mark}`, 'f32', [1, frequencies.length], frequencies)
  const column = constant('rope.column', 'i64', [2], BigInt64Array.of(-1n, 1n))
  const positions = node('Range', `/model/rope${mark}/Range`, [start, limit, step])
  const reshaped = node('Reshape', `/model/rope${mark}/Reshape`, [positions, column])
  const angles = node('Mul', `/model/rope${mark}/Mul`, [reshaped, inverse])
  const table = (op: 'Cos' | 'Sin'): string => {
    const outputs = [`${op.toLowerCase()}_cache${mark}`]
    const factor = attentionFactor(rope)
    if (factor === 1) return node(op, `/model/rope${mark}/${op}`, [angles], { outputs })
    const plain = node(op, `/model/rope${mark}/${op}`, [angles])
    const by = constant(`rope.factor${mark}`, 'f32', [1, 1], Float32Array.of(factor))
    return node('Mul', `/model/rope${mark}/${op}/Mul`, [plain, by], { outputs })
  }
  return [table('Cos'), table('Sin')]
}
