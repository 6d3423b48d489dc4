import { asBytes } from '../../sdk/core/tensor/views.ts'
import type { GgufEntry, GgufTestTensor } from './gguf.ts'
import { randomFloats } from './models.ts'

/** A Llama of one layer and eight tokens. */
export const TINY_ENTRIES: readonly GgufEntry[] = [
  { key: 'general.architecture', type: 'text', value: 'llama' },
  { key: 'llama.block_count', type: 'u32', value: 1 },
  { key: 'llama.context_length', type: 'u32', value: 64 },
  { key: 'llama.embedding_length', type: 'u32', value: 32 },
  { key: 'llama.feed_forward_length', type: 'u32', value: 64 },
  { key: 'llama.attention.head_count', type: 'u32', value: 4 },
  { key: 'llama.attention.head_count_kv', type: 'u32', value: 2 },
  { key: 'llama.attention.layer_norm_rms_epsilon', type: 'f32', value: 1e-5 },
  { key: 'llama.rope.freq_base', type: 'f32', value: 10_000 },
  { key: 'tokenizer.ggml.model', type: 'text', value: 'gpt2' },
  { key: 'tokenizer.ggml.pre', type: 'text', value: 'gpt-2' },
  {
    key: 'tokenizer.ggml.tokens',
    type: 'texts',
    value: ['<s>', '</s>', 'a', 'b', 'ab', '\uFEFFa', '\uFEFF', 'c'],
  },
  { key: 'tokenizer.ggml.token_type', type: 'i32s', value: [3, 3, 1, 1, 1, 1, 1, 1] },
  { key: 'tokenizer.ggml.merges', type: 'texts', value: ['a b'] },
  { key: 'tokenizer.ggml.bos_token_id', type: 'u32', value: 0 },
  { key: 'tokenizer.ggml.eos_token_id', type: 'u32', value: 1 },
  { key: 'tokenizer.ggml.add_bos_token', type: 'bool', value: 1 },
  { key: 'tokenizer.chat_template', type: 'text', value: '{{ messages[0].content }}' },
]

const F32 = 0

/** Random values in f32. */
export function tinyTensor(name: string, dims: readonly number[], seed: number): GgufTestTensor {
  const values = randomFloats(
    dims.reduce((product, size) => product * size, 1),
    seed,
  )
  return { name, dims, type: F32, data: asBytes(values) }
}

export const TINY_TENSORS: readonly GgufTestTensor[] = [
  tinyTensor('token_embd.weight', [8, 32], 1),
  tinyTensor('output_norm.weight', [32], 2),
  tinyTensor('blk.0.attn_norm.weight', [32], 3),
  tinyTensor('blk.0.attn_q.weight', [32, 32], 4),
  tinyTensor('blk.0.attn_k.weight', [16, 32], 5),
  tinyTensor('blk.0.attn_v.weight', [16, 32], 6),
  tinyTensor('blk.0.attn_output.weight', [32, 32], 7),
  tinyTensor('blk.0.ffn_norm.weight', [32], 8),
  tinyTensor('blk.0.ffn_gate.weight', [64, 32], 9),
  tinyTensor('blk.0.ffn_up.weight', [64, 32], 10),
  tinyTensor('blk.0.ffn_down.weight', [32, 64], 11),
]
