import { int } from '../graph/graph.ts'
import { TYPE_CODES } from '../graph/onnx-format.ts'
import type { GraphBuilder } from '../model/graph-builder.ts'
import { bfloatsToFloats, floatsToBfloats } from '../tensor/float16.ts'
import type { AlibiScheme } from './decoder.ts'

/**
 * One slope per head, f32: a geometric series from 2^(-8/n); heads beyond a power of two take every other
 * value of the next longer series (Press, Smith and Lewis 2021 and their code).
 */
export function alibiSlopes(headCount: number): Float32Array<ArrayBuffer> {
  const series = (length: number): number[] =>
    Array.from({ length }, (_, i) => 2 ** ((-8 * (i + 1)) / length))
  const power = 2 ** Math.floor(Math.log2(headCount))
  const between = series(2 * power).filter((_, i) => i % 2 === 0)
  return Float32Array.from([...series(power), ...between.slice(0, headCount - power)])
}

/**
 * f32 [1, heads, S, T]. Biases that differ by a constant along a row give the same softmax, so the key's own
 * position serves as its distance. `tokens` and `total` are i64 [].
 */
export function addDistanceBias(
  builder: GraphBuilder,
  parts: { headCount: number; scheme: AlibiScheme; tokens: string; total: string },
): string {
  const { node, constant } = builder
  const { headCount, scheme, tokens, total } = parts
  const exact = alibiSlopes(headCount)
  const slopes = scheme.rounded ? bfloatsToFloats(floatsToBfloats(exact)) : exact
  const column = constant('alibi.slopes', 'f32', [1, headCount, 1, 1], slopes)
  const zero = constant('alibi.zero', 'i64', [], BigInt64Array.of(0n))
  const one = constant('const.one', 'i64', [], BigInt64Array.of(1n))
  const range = node('Range', '/model/alibi/Range', [zero, total, one])
  const keys = node('Cast', '/model/alibi/Cast', [range], {
    attributes: { to: int(TYPE_CODES.f32) },
  })
  const rounded = (name: string, value: string): string =>
    scheme.rounded ? addRounding(builder, `/model/alibi/${name}`, value) : value
  const product = node('Mul', '/model/alibi/Mul', [column, rounded('keys', keys)])
  const by = constant('alibi.scale', 'f32', [], Float32Array.of(scheme.scale))
  const row = node('Mul', '/model/alibi/scaled', [rounded('product', product), by])
  const axis = constant('const.axis_0', 'i64', [1], BigInt64Array.of(0n))
  const vectors = [tokens, total].map((length, i) =>
    node('Unsqueeze', `/model/alibi/Unsqueeze_${i}`, [length, axis]),
  )
  const front = constant('alibi.shape', 'i64', [2], BigInt64Array.of(1n, BigInt(headCount)))
  const shape = node('Concat', '/model/alibi/Concat', [front, ...vectors], {
    attributes: { axis: int(0) },
  })
  return node('Expand', '/model/alibi/Expand', [row, shape])
}

/**
 * Rounds f32 to the 8 significant bits of bfloat16 by Dekker's splitting (1971): casts to that type are
 * missing from some builds of the runtime.
 */
function addRounding({ node, constant }: GraphBuilder, name: string, value: string): string {
  const splitter = constant('alibi.splitter', 'f32', [], Float32Array.of(2 ** 16 + 1))
  const large = node('Mul', `${name}/large`, [value, splitter])
  const rest = node('Sub', `${name}/rest`, [large, value])
  return node('Sub', `${name}/rounded`, [large, rest])
}
