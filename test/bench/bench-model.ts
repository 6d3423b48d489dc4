import { copyFile, mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { builtinDirectory } from '../../sdk/index.node.ts'
import { randomTensors, tinyLlama, writeSafetensors } from '../support/models.ts'

/**
 * 76 million parameters: a lap takes long enough for the cost of hops to show in proportion, as it would
 * with a model that people use. The numbers are random, since only their count decides the time.
 */
const CONFIG = {
  architectures: ['LlamaForCausalLM'],
  model_type: 'llama',
  vocab_size: 1_024,
  hidden_size: 768,
  intermediate_size: 2_048,
  num_hidden_layers: 12,
  num_attention_heads: 12,
  num_key_value_heads: 4,
  head_dim: 64,
  hidden_act: 'silu',
  max_position_embeddings: 256,
  rms_norm_eps: 1e-5,
  rope_theta: 10_000,
  tie_word_embeddings: true,
  torch_dtype: 'float16',
}

/** Writes the model in the Hugging Face layout, with the built-in tokenizer. Returns its directory. */
export async function writeBenchModel(parent: string): Promise<string> {
  const directory = join(parent, 'bench-76m')
  await mkdir(directory, { recursive: true })
  const config = tinyLlama(CONFIG)
  await writeFile(join(directory, 'config.json'), JSON.stringify(CONFIG))
  await writeFile(
    join(directory, 'model.safetensors'),
    writeSafetensors(config, randomTensors(config), 'f16'),
  )
  for (const file of ['tokenizer.json', 'tokenizer_config.json']) {
    await copyFile(join(builtinDirectory(), 'crowdtalk-2.6m', file), join(directory, file))
  }
  return directory
}
