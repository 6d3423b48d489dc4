import { projection, type LayerSpec } from '../decoder/decoder.ts'
import { CrowdError } from '../errors.ts'
import type { JsonFields } from '../model/json-fields.ts'
import {
  activationOf,
  checkHeads,
  contextOf,
  headOf,
  layerCountOf,
  layerNorm,
  sizeOf,
  vocabOf,
  type Family,
} from './family.ts'

const EMBEDDING = 'transformer.wte.weight'
/** What the class makes of a file that has neither field. */
const DEFAULT_TYPES: readonly unknown[] = [[['global', 'local'], 12]]

/** GPT-Neo: GPT-2 with separate projections, unscaled scores, and a window in every other layer. */
export const GPT_NEO: Family = {
  modelType: 'gpt_neo',
  architecture: 'GPTNeoForCausalLM',
  defaults: {
    max_position_embeddings: 2048,
    intermediate_size: null,
    window_size: 256,
    attention_types: null,
    layer_norm_epsilon: 1e-5,
    activation_function: 'gelu_new',
    tie_word_embeddings: true,
    eos_token_id: 50_256,
  },
  nullable: ['eos_token_id'],
  context: contextOf,
  describe(fields, contextLength) {
    const hiddenSize = sizeOf(fields, 'hidden_size')
    const heads = sizeOf(fields, 'num_heads')
    const epsilon = fields.number('layer_norm_epsilon')
    const windows = windowsOf(fields)
    return {
      ...checkHeads({ headCount: heads, kvHeadCount: heads, headSize: hiddenSize / heads }),
      hiddenSize,
      vocabSize: vocabOf(fields),
      contextLength,
      embedding: {
        source: EMBEDDING,
        scale: 1,
        positions: { source: 'transformer.wpe.weight', rows: contextOf(fields), offset: 0 },
        norm: null,
      },
      layers: windows.map((window, layer) =>
        neoLayer(fields, layer, { hidden: hiddenSize, epsilon, window }),
      ),
      finalNorm: layerNorm('transformer.ln_f', hiddenSize, epsilon),
      head: headOf(fields, EMBEDDING),
    }
  },
}

/** The window of each layer, 0 = none; from `attention_layers`, else `attention_types` [[kinds, times], ..]. */
function windowsOf(fields: JsonFields): number[] {
  const layerCount = layerCountOf(fields, 'num_layers')
  const window = sizeOf(fields, 'window_size')
  const types = fields.has('attention_types') ? fields.array('attention_types') : DEFAULT_TYPES
  const kinds = fields.has('attention_layers')
    ? fields.array('attention_layers')
    : types.flatMap(repeated)
  if (kinds.length !== layerCount || kinds.some((kind) => kind !== 'global' && kind !== 'local')) {
    throw new CrowdError(
      'model-invalid',
      `config.json: "attention_types" must name ${layerCount} layers, each global or local.`,
    )
  }
  return kinds.map((kind) => (kind === 'local' ? window : 0))
}

function repeated(entry: unknown): unknown[] {
  const pair: readonly unknown[] = Array.isArray(entry) ? entry : []
  const [kinds, times] = pair
  const list: readonly unknown[] = Array.isArray(kinds) ? kinds : []
  const count = typeof times === 'number' && times >= 0 && times <= 1000 ? times : 0
  return Array.from({ length: count }, () => list).flat()
}

function neoLayer(
  fields: JsonFields,
  layer: number,
  sizes: { readonly hidden: number; readonly epsilon: number; readonly window: number },
): LayerSpec {
  const { hidden, epsilon, window } = sizes
  const name = `transformer.h.${layer}`
  const inner = fields.has('intermediate_size') ? sizeOf(fields, 'intermediate_size') : 4 * hidden
  const attention = `${name}.attn.attention`
  return {
    attentionNorm: layerNorm(`${name}.ln_1`, hidden, epsilon),
    attention: {
      query: projection(`${attention}.q_proj`, hidden, hidden),
      key: projection(`${attention}.k_proj`, hidden, hidden),
      value: projection(`${attention}.v_proj`, hidden, hidden),
      output: projection(`${attention}.out_proj`, hidden, hidden, { bias: true }),
      headNorms: null,
      scale: 1,
      softcap: 0,
      window,
      positions: { kind: 'none' },
    },
    attentionPostNorm: null,
    order: 'sequential',
    feedForwardNorm: layerNorm(`${name}.ln_2`, hidden, epsilon),
    feedForward: {
      kind: 'plain',
      up: projection(`${name}.mlp.c_fc`, inner, hidden, { bias: true }),
      down: projection(`${name}.mlp.c_proj`, hidden, inner, { bias: true }),
      activation: activationOf(fields, 'activation_function'),
    },
    feedForwardPostNorm: null,
  }
}
