import { CrowdError } from '../errors.ts'
import { describeShape } from '../tensor/dtype.ts'
import { describeTensorType, findTensorType, type GgufTensorType } from './tensor-types.ts'

/** A tensor and where its bytes lie. */
export type GgufTensor = {
  readonly name: string
  readonly type: GgufTensorType
  /** Outermost first, as everywhere but in GGUF. */
  readonly dims: readonly number[]
  /** Bytes from the start of the file. */
  readonly offset: number
  readonly length: number
}

/** What a header says of a tensor. */
export type TensorInfo = {
  readonly name: string
  /** Innermost first. */
  readonly shape: readonly bigint[]
  readonly dtype: number
  /** Bytes from the start of the data. */
  readonly offset: bigint
}

export type GgufFile = {
  readonly name: string
  readonly bytes: number
  /** End of the tensor descriptions. */
  readonly headerBytes: number
  /** `general.alignment`, where there is one. */
  readonly alignment: unknown
}

const DEFAULT_ALIGNMENT = 32
/** Larger than any vocabulary; keeps every product exact. */
const DIMENSION_MAX = 1n << 32n

/**
 * The tensors of a file; shapes, types and ranges are checked against each other and the file.
 * @throws CrowdError model-invalid, model-unsupported (the tensor is named)
 */
export function placeTensors(infos: readonly TensorInfo[], file: GgufFile): GgufTensor[] {
  const alignment = parseAlignment(file)
  const start = Math.ceil(file.headerBytes / alignment) * alignment
  const tensors = infos.map((info) => placeTensor(info, { file, alignment, start }))
  checkOverlaps(tensors, file)
  return tensors
}

function parseAlignment({ alignment, name }: GgufFile): number {
  if (alignment === undefined) return DEFAULT_ALIGNMENT
  const isPowerOfTwo =
    typeof alignment === 'number' && (alignment & (alignment - 1)) === 0 && alignment >= 1
  if (isPowerOfTwo && alignment <= 1 << 20) return alignment
  throw new CrowdError('model-invalid', `${name}: general.alignment is not a power of two.`)
}

function placeTensor(
  info: TensorInfo,
  { file, alignment, start }: { file: GgufFile; alignment: number; start: number },
): GgufTensor {
  const fail = (what: string): CrowdError =>
    new CrowdError('model-invalid', `${file.name}: the tensor ${info.name} ${what}.`)
  const type = findTensorType(info.dtype)
  if (type === undefined) {
    throw new CrowdError(
      'model-unsupported',
      `${file.name}: the tensor ${info.name} has the type ${describeTensorType(info.dtype)}, which is not supported.`,
    )
  }
  if (info.shape.some((size) => size < 1n || size > DIMENSION_MAX)) throw fail('has an empty shape')
  const dims = info.shape.map(Number).reverse()
  const columns = dims.at(-1) ?? 0
  if (columns % type.blockElements !== 0) {
    throw fail(
      `${describeShape(dims)} has rows that are no whole blocks of ${type.blockElements} (${type.name})`,
    )
  }
  const rows = dims.slice(0, -1).reduce((product, size) => product * size, 1)
  const length = rows * (columns / type.blockElements) * type.blockBytes
  const offset = start + Number(info.offset)
  if (info.offset % BigInt(alignment) !== 0n) throw fail(`is not aligned to ${alignment} bytes`)
  if (!Number.isSafeInteger(length) || offset + length > file.bytes) {
    throw fail(`${describeShape(dims)} ends after the file`)
  }
  return { name: info.name, type, dims, offset, length }
}

function checkOverlaps(tensors: readonly GgufTensor[], file: GgufFile): void {
  const sorted = tensors.toSorted((a, b) => a.offset - b.offset)
  sorted.forEach((tensor, i) => {
    const before = sorted[i - 1]
    if (before && before.offset + before.length > tensor.offset) {
      throw new CrowdError(
        'model-invalid',
        `${file.name}: the tensors ${before.name} and ${tensor.name} overlap.`,
      )
    }
  })
}
