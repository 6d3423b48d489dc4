import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import {
  u32,
  u64,
  writeGguf,
  type GgufEntry,
  type GgufTestTensor,
} from '../../test/support/gguf.ts'
import { randomFloats } from '../../test/support/models.ts'
import { TINY_ENTRIES as ENTRIES, TINY_TENSORS as TENSORS } from '../../test/support/tiny-gguf.ts'
import { CrowdError } from '../core/errors.ts'
import { scanHeader } from '../core/gguf/scan-header.ts'
import { asFloats } from '../core/tensor/views.ts'
import { openGguf } from './gguf-source.node.ts'
import { importModel } from './import-model.node.ts'

const GOOD = writeGguf(ENTRIES, TENSORS)
const HEADER_BYTES = scanHeader(GOOD, GOOD.length, 'good')?.bytes ?? 0

let folder: string
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'crowdinfer-gguf-'))
})
afterEach(() => rm(folder, { recursive: true, force: true }))

async function put(bytes: Uint8Array, name = 'tiny.gguf'): Promise<string> {
  const path = join(folder, name)
  await writeFile(path, bytes)
  return path
}

/** How importing ends: "accepted", or the error as `code: message`; anything else is a fault. */
async function outcome(bytes: Uint8Array): Promise<string> {
  const path = await put(bytes)
  const before = process.cpuUsage()
  const result = await importModel(path, join(folder, 'store')).then(
    () => 'accepted',
    (error: unknown) => {
      if (error instanceof CrowdError) return `${error.code}: ${error.message}`
      return `not named: ${String(error)}`
    },
  )
  // Of the processor: others may be using the disk.
  const { user, system } = process.cpuUsage(before)
  expect((user + system) / 1_000).toBeLessThan(1_000)
  return result
}

function patched(at: number, bytes: readonly number[]): Uint8Array {
  const copy = GOOD.slice()
  copy.set(bytes, at)
  return copy
}

/** Where a text ends in the file. */
function after(text: string): number {
  const at = Buffer.from(GOOD).indexOf(text)
  expect(at).toBeGreaterThan(0)
  return at + text.length
}

const changed = (name: string, change: Partial<GgufTestTensor>): Uint8Array =>
  writeGguf(
    ENTRIES,
    TENSORS.map((one) => (one.name === name ? { ...one, ...change } : one)),
  )
const without = (key: string): Uint8Array =>
  writeGguf(
    ENTRIES.filter((entry) => entry.key !== key),
    TENSORS,
  )
const withEntry = (...entries: readonly GgufEntry[]): Uint8Array => {
  const keys = entries.map(({ key }) => key)
  return writeGguf([...ENTRIES.filter(({ key }) => !keys.includes(key)), ...entries], TENSORS)
}

describe('openGguf', () => {
  it('gives names, shapes, rows and settings of the Hugging Face layout', async () => {
    const source = await openGguf(await put(GOOD))
    expect(source.name).toBe('tiny')
    expect(source.config).toMatchObject({
      model_type: 'llama',
      architectures: ['LlamaForCausalLM'],
      hidden_size: 32,
      head_dim: 8,
      num_key_value_heads: 2,
      vocab_size: 8,
      rms_norm_eps: 1e-5,
      tie_word_embeddings: true,
      eos_token_id: [1],
    })
    const name = 'model.layers.0.self_attn.k_proj.weight'
    expect(source.weights.find(name)).toEqual({
      name,
      type: 'f32',
      dims: [16, 32],
      keptAs: 'f32',
    })
    const stored = asFloats(TENSORS[4]!.data)
    // Halves of a head lie interleaved in the file: row 5 of head 1 is pair 1, second half.
    const row = asFloats(await source.weights.read(name, (8 + 5) * 128, 128))
    expect([...row]).toEqual([...stored.subarray((8 + 3) * 32, (8 + 4) * 32)])
    // A range that begins and ends within rows.
    const part = asFloats(await source.weights.read(name, 8 * 128 + 64, 96))
    expect([...part]).toEqual([
      ...stored.subarray(8 * 32 + 16, 9 * 32),
      ...stored.subarray(10 * 32, 10 * 32 + 8),
    ])
    expect(source.weights.find('blk.0.attn_k.weight')).toBeUndefined()
    await source.close()
  })

  it('keeps the byte order mark that tokens begin with', async () => {
    const source = await openGguf(await put(GOOD))
    const json: unknown = JSON.parse(
      new TextDecoder().decode(await source.files.get('tokenizer.json')?.()),
    )
    expect(json).toMatchObject({ model: { vocab: { '\uFEFFa': 5, '\uFEFF': 6 } } })
    await source.close()
  })

  it.each([2, 3])('reads version %i, and another alignment', async (version) => {
    const entry: GgufEntry = { key: 'general.alignment', type: 'u32', value: 64 }
    const bytes = writeGguf([...ENTRIES, entry], TENSORS, { version, alignment: 64 })
    const source = await openGguf(await put(bytes))
    const values = await source.weights.read('model.norm.weight', 0, 128)
    expect(Buffer.from(values).equals(TENSORS[1]!.data)).toBe(true)
    await source.close()
  })

  it('imports: a store like any other', async () => {
    const manifest = await importModel(await put(GOOD), join(folder, 'store'))
    expect(manifest).toMatchObject({ id: 'tiny', layerCount: 1, eosTokenIds: [1] })
    expect(Object.keys(manifest.files)).toContain('tokenizer.json')
  })

  it('reads a model that is split over files, from any of them', async () => {
    const split: GgufEntry = { key: 'split.count', type: 'u32', value: 2 }
    const halves = [TENSORS.slice(0, 5), TENSORS.slice(5)]
    const first = await put(writeGguf([...ENTRIES, split], halves[0]!), 'm-00001-of-00002.gguf')
    const second = await put(writeGguf([split], halves[1]!), 'm-00002-of-00002.gguf')
    for (const path of [first, second]) {
      const source = await openGguf(path)
      expect(source.name).toBe('m')
      const down = await source.weights.read('model.layers.0.mlp.down_proj.weight', 0, 8192)
      expect(Buffer.from(down).equals(TENSORS[10]!.data)).toBe(true)
      await source.close()
    }
    await rm(second)
    await expect(openGguf(first)).rejects.toThrow(/m-00002-of-00002\.gguf can't be opened/)
    const alone = await put(await readFile(first), 'alone.gguf')
    await expect(openGguf(alone)).rejects.toThrow(/alone\.gguf is one of 2 files/)
  })
})

describe('a GGUF file that can not be read', () => {
  it.each([
    ['another file', () => Buffer.from('<!doctype html>'), /^model-invalid: .*not those of a GGUF/],
    ['nothing', () => new Uint8Array(), /^model-invalid: .*cut short, within the first bytes/],
    ['version 1', () => patched(4, u32(1)), /^model-unsupported: .*version 1/],
    ['version 9', () => patched(4, u32(9)), /^model-invalid: .*version 9/],
    ['big endian', () => patched(4, [0, 0, 0, 3]), /^model-unsupported: .*big endian/],
    ['too many tensors', () => patched(8, u64(2 ** 40)), /^model-invalid: .*counts .* tensors/],
    ['2^64 entries', () => patched(16, Array(8).fill(255)), /^model-invalid: .*metadata entries/],
    [
      'a list longer than the file',
      () => patched(after('tokenizer.ggml.tokens') + 8, u64(1_500_000)),
      /^model-invalid: .*"tokenizer\.ggml\.tokens" counts 1500000 values/,
    ],
    [
      'a list of 2^50 texts',
      () => patched(after('tokenizer.ggml.merges') + 8, u64(2 ** 50)),
      /^model-invalid: .*"tokenizer\.ggml\.merges" has .* too many/,
    ],
    [
      'lists in a list',
      () => patched(after('tokenizer.ggml.merges') + 4, u32(9)),
      /^model-invalid: .*lists in a list/,
    ],
    [
      'a text that is too long',
      () => patched(after('tokenizer.chat_template') + 4, u64(2 ** 33)),
      /^model-invalid: .*"tokenizer\.chat_template" has a text of 8589934592 bytes/,
    ],
    [
      'an unknown type of entry',
      () => patched(after('llama.block_count'), u32(77)),
      /^model-invalid: .*"llama\.block_count" has values of the type 77/,
    ],
    [
      'an entry twice',
      () => writeGguf([...ENTRIES, ENTRIES[1]!], TENSORS),
      /^model-invalid: .*"llama\.block_count" is there twice/,
    ],
    [
      'a key that is no key',
      () => withEntry({ key: '__proto__', type: 'u32', value: 1 }),
      /^model-invalid: .*__proto__/,
    ],
    [
      'a tensor twice',
      () => writeGguf(ENTRIES, [...TENSORS, TENSORS[1]!]),
      /^model-invalid: .*"output_norm\.weight" is there twice/,
    ],
    [
      'five dimensions',
      () => changed('output_norm.weight', { dims: [1, 1, 1, 1, 32] }),
      /^model-invalid: .*"output_norm\.weight" has 5 dimensions/,
    ],
    [
      'an empty shape',
      () => changed('output_norm.weight', { dims: [0] }),
      /^model-invalid: .*output_norm\.weight has an empty shape/,
    ],
    [
      'a tensor that ends after the file',
      () => changed('token_embd.weight', { dims: [2 ** 31, 32] }),
      /^model-invalid: .*token_embd\.weight .*ends after the file/,
    ],
    [
      'tensors that overlap',
      () => changed('output_norm.weight', { offset: 32 }),
      /^model-invalid: .*token_embd\.weight and output_norm\.weight overlap/,
    ],
    [
      'a tensor that is not aligned',
      () => changed('output_norm.weight', { offset: 1025 }),
      /^model-invalid: .*output_norm\.weight is not aligned/,
    ],
    [
      'rows that are no whole blocks',
      () => changed('blk.0.ffn_down.weight', { type: 12 }),
      /^model-invalid: .*ffn_down\.weight .*no whole blocks of 256 \(Q4_K\)/,
    ],
    [
      'a tensor type that is not read',
      () => changed('blk.0.ffn_down.weight', { type: 23 }),
      /^model-unsupported: .*ffn_down\.weight has the type IQ4_XS/,
    ],
    [
      'an alignment that is none',
      () => withEntry({ key: 'general.alignment', type: 'u32', value: 48 }),
      /^model-invalid: .*general\.alignment/,
    ],
    [
      'another architecture',
      () => withEntry({ key: 'general.architecture', type: 'text', value: 'mamba' }),
      /^model-unsupported: .*"mamba" is not supported in GGUF/,
    ],
    [
      'a tensor that the architecture does not have',
      () => changed('blk.0.ffn_norm.weight', { name: 'blk.0.attn_sinks.weight' }),
      /^model-unsupported: .*blk\.0\.attn_sinks\.weight is none/,
    ],
    [
      'an entry that would change the numbers',
      () => withEntry({ key: 'llama.logit_scale', type: 'f32', value: 2 }),
      /^model-unsupported: .*llama\.logit_scale is 2/,
    ],
    [
      'no sizes',
      () => without('llama.block_count'),
      /^model-invalid: .*llama\.block_count is missing/,
    ],
    [
      'layers that are not there',
      () => withEntry({ key: 'llama.block_count', type: 'u32', value: 998 }),
      /^model-invalid: .*block_count is 998; there are tensors of 1 layers/,
    ],
    ['no tokens', () => without('tokenizer.ggml.tokens'), /^model-invalid: .*tokens is missing/],
    ['no merges', () => without('tokenizer.ggml.merges'), /^model-invalid: .*merges is missing/],
    [
      'fewer types than tokens',
      () => withEntry({ key: 'tokenizer.ggml.token_type', type: 'i32s', value: [1] }),
      /^model-invalid: .*token_type has 1 values for 8 tokens/,
    ],
    [
      'more tokens than rows',
      () =>
        withEntry({ key: 'tokenizer.ggml.tokens', type: 'texts', value: Array.from('abcdefghij') }),
      /^model-invalid: .*has 10 tokens, the embedding 8 rows/,
    ],
    [
      'two tokens alike',
      () =>
        withEntry({ key: 'tokenizer.ggml.tokens', type: 'texts', value: Array.from('abcdefga') }),
      /^model-unsupported: .*two tokens with the same text/,
    ],
    [
      'another kind of tokenizer',
      () => withEntry({ key: 'tokenizer.ggml.model', type: 'text', value: 't5' }),
      /^model-unsupported: .*"t5" is not supported/,
    ],
    [
      'an unknown split',
      () => withEntry({ key: 'tokenizer.ggml.pre', type: 'text', value: 'kimi-k2' }),
      /^model-unsupported: .*"kimi-k2"/,
    ],
  ])('%s', async (_what, make, message) => {
    expect(await outcome(make())).toMatch(message)
  })

  it('cut short anywhere: names the part', async () => {
    for (let length = 0; length < HEADER_BYTES; length += 7) {
      expect(await outcome(GOOD.subarray(0, length))).toMatch(
        /^model-invalid: tiny\.gguf: the GGUF header is cut short, within |for which the file is too short/,
      )
    }
    expect(await outcome(GOOD.subarray(0, GOOD.length - 64))).toMatch(/ends after the file/)
    expect(HEADER_BYTES / 7).toBeGreaterThan(150)
  })

  it('with any byte changed: accepted or refused by name, never anything else', async () => {
    const refused = new Set<string>()
    for (let round = 0; round < 400; round++) {
      const [a = 0, b = 0] = randomFloats(2, round).map(Math.abs)
      const at = Math.floor(a * HEADER_BYTES)
      const result = await outcome(patched(at, [GOOD[at]! ^ (1 + Math.floor(b * 254))]))
      expect(result).toMatch(/^(accepted|model-invalid: |model-unsupported: )/)
      if (result !== 'accepted') refused.add(result)
    }
    expect(refused.size).toBeGreaterThan(100)
  })
})
