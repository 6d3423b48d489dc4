/** A metadata entry: key, type by its number in the format, value; a list names the type of its values. */
export type GgufEntry =
  | { readonly key: string; readonly type: 'u32' | 'f32' | 'bool'; readonly value: number }
  | { readonly key: string; readonly type: 'text'; readonly value: string }
  | { readonly key: string; readonly type: 'texts'; readonly value: readonly string[] }
  | { readonly key: string; readonly type: 'f32s' | 'i32s'; readonly value: readonly number[] }

export type GgufTestTensor = {
  readonly name: string
  /** Outermost first. */
  readonly dims: readonly number[]
  readonly type: number
  readonly data: Uint8Array
  /** Default: where the data is put. */
  readonly offset?: number
}

const TYPES = { u32: 4, f32: 6, bool: 7, text: 8, texts: 9, f32s: 9, i32s: 9 } as const

/** A GGUF file in memory, little endian. */
export function writeGguf(
  entries: readonly GgufEntry[],
  tensors: readonly GgufTestTensor[],
  options: { readonly version?: number; readonly alignment?: number } = {},
): Uint8Array<ArrayBuffer> {
  const alignment = options.alignment ?? 32
  const out: number[] = [...new TextEncoder().encode('GGUF'), ...u32(options.version ?? 3)]
  out.push(...u64(tensors.length), ...u64(entries.length))
  for (const entry of entries) {
    out.push(...text(entry.key), ...u32(TYPES[entry.type]), ...value(entry))
  }
  let end = 0
  const data: { readonly at: number; readonly bytes: Uint8Array }[] = []
  for (const { name, dims, type, data: bytes, offset } of tensors) {
    out.push(...text(name), ...u32(dims.length), ...dims.toReversed().flatMap(u64))
    out.push(...u32(type), ...u64(offset ?? end))
    data.push({ at: end, bytes })
    end = Math.ceil((end + bytes.length) / alignment) * alignment
  }
  const start = Math.ceil(out.length / alignment) * alignment
  const file = new Uint8Array(start + end)
  file.set(out)
  for (const { at, bytes } of data) file.set(bytes, start + at)
  return file
}

function value(entry: GgufEntry): number[] {
  switch (entry.type) {
    case 'u32':
      return u32(entry.value)
    case 'f32':
      return f32(entry.value)
    case 'bool':
      return [entry.value]
    case 'text':
      return text(entry.value)
    case 'texts':
      return [...u32(8), ...u64(entry.value.length), ...entry.value.flatMap(text)]
    case 'f32s':
      return [...u32(6), ...u64(entry.value.length), ...entry.value.flatMap(f32)]
    case 'i32s':
      return [...u32(5), ...u64(entry.value.length), ...entry.value.flatMap(u32)]
  }
}

export function u32(number: number): number[] {
  return [number & 255, (number >>> 8) & 255, (number >>> 16) & 255, number >>> 24]
}

export function u64(number: number): number[] {
  return [...u32(number % 0x100000000), ...u32(Math.floor(number / 0x100000000))]
}

function f32(number: number): number[] {
  return [...new Uint8Array(Float32Array.of(number).buffer)]
}

function text(content: string): number[] {
  const bytes = new TextEncoder().encode(content)
  return [...u64(bytes.length), ...bytes]
}
