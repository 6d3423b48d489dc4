import type { WeightDtype } from '../model/manifest.ts'
import { bfloatsToFloats, halvesToFloats } from '../tensor/float16.ts'
import { asFloats, asHalves } from '../tensor/views.ts'
import {
  dequantizeQ2_K,
  dequantizeQ3_K,
  dequantizeQ4_K,
  dequantizeQ5_K,
  dequantizeQ6_K,
} from './dequantize-k.ts'
import {
  dequantizeIQ4_NL,
  dequantizeQ4_0,
  dequantizeQ4_1,
  dequantizeQ5_0,
  dequantizeQ5_1,
  dequantizeQ8_0,
} from './dequantize-legacy.ts'

const EXACT: Readonly<Record<string, WeightDtype>> = {
  F32: 'f32',
  F16: 'f16',
  BF16: 'f16',
  Q8_0: 'q8',
  Q4_0: 'q4',
}

/**
 * The dtype that files of a type are kept in, which holds the same; null where none does. Q4_1 and Q4_K, which q4 holds, are
 * null: files that begin with them have matrices of 5 and 6 bits too.
 */
export function keptAs({ name }: GgufTensorType): WeightDtype | null {
  return EXACT[name] ?? null
}

/** How a tensor's values lie in a GGUF file. */
export type GgufTensorType = {
  readonly name: string
  /** Values of a row come in blocks of this many. */
  readonly blockElements: number
  readonly blockBytes: number
  /** Whole blocks to f32; `out` has their number of values. */
  readonly dequantize: (bytes: Uint8Array<ArrayBuffer>, out: Float32Array) => void
}

/** Types that are read, by their number in the file. */
const TYPES: Readonly<Record<number, GgufTensorType>> = {
  0: type('F32', 1, 4, (bytes, out) => out.set(asFloats(bytes))),
  1: type('F16', 1, 2, (bytes, out) => out.set(halvesToFloats(asHalves(bytes)))),
  2: type('Q4_0', 32, 18, dequantizeQ4_0),
  3: type('Q4_1', 32, 20, dequantizeQ4_1),
  6: type('Q5_0', 32, 22, dequantizeQ5_0),
  7: type('Q5_1', 32, 24, dequantizeQ5_1),
  8: type('Q8_0', 32, 34, dequantizeQ8_0),
  10: type('Q2_K', 256, 84, dequantizeQ2_K),
  11: type('Q3_K', 256, 110, dequantizeQ3_K),
  12: type('Q4_K', 256, 144, dequantizeQ4_K),
  13: type('Q5_K', 256, 176, dequantizeQ5_K),
  14: type('Q6_K', 256, 210, dequantizeQ6_K),
  20: type('IQ4_NL', 32, 18, dequantizeIQ4_NL),
  30: type('BF16', 1, 2, (bytes, out) => out.set(bfloatsToFloats(asHalves(bytes)))),
}

/** Names of types that aren't read, for messages. */
const OTHER_NAMES: Readonly<Record<number, string>> = {
  9: 'Q8_1',
  15: 'Q8_K',
  16: 'IQ2_XXS',
  17: 'IQ2_XS',
  18: 'IQ3_XXS',
  19: 'IQ1_S',
  21: 'IQ3_S',
  22: 'IQ2_S',
  23: 'IQ4_XS',
  24: 'I8',
  25: 'I16',
  26: 'I32',
  27: 'I64',
  28: 'F64',
  29: 'IQ1_M',
  34: 'TQ1_0',
  35: 'TQ2_0',
  39: 'MXFP4',
}

export function findTensorType(id: number): GgufTensorType | undefined {
  return Object.hasOwn(TYPES, id) ? TYPES[id] : undefined
}

export function describeTensorType(id: number): string {
  return findTensorType(id)?.name ?? OTHER_NAMES[id] ?? `number ${id}`
}

function type(
  name: string,
  blockElements: number,
  blockBytes: number,
  dequantize: GgufTensorType['dequantize'],
): GgufTensorType {
  return { name, blockElements, blockBytes, dequantize }
}
