import { describe, expect, it } from 'vitest'
import { attentionFactor, inverseFrequencies } from '../../sdk/core/decoder/rope.ts'
import type { Decoder, LayerSpec } from '../../sdk/core/decoder/decoder.ts'
import { CrowdError } from '../../sdk/core/errors.ts'
import type { Family } from '../../sdk/core/families/family.ts'
import { fillDefaults } from '../../sdk/core/families/fill-defaults.ts'
import { parseDecoder } from '../../sdk/core/families/parse-decoder.ts'
import { FAMILIES } from '../../sdk/core/families/read-config.ts'
import { jsonFields, type JsonFields } from '../../sdk/core/model/json-fields.ts'
import { readConfigFacts, type Config, type FamilyFacts } from './config-facts.ts'

const facts = await readConfigFacts()
const families = FAMILIES.map((family) => ({
  family,
  type: family.modelType,
  own: factsOf(family),
}))
const fields = families.flatMap(({ type, own, family }) =>
  Object.keys(own.absent).map((field) => ({ type, field, own, family })),
)
/** Fields that no class, or not each, has: BLOOM's sets no end, and OLMoE's heads make up the hidden size. */
const NOT_OF_THE_CLASS = ['seq_length', 'head_dim']
/** Fields that don't count where the file has another one. */
const OVERRULED: Readonly<Record<string, string>> = {
  use_sliding_window: 'layer_types',
  sliding_window: 'layer_types',
  max_window_layers: 'layer_types',
  sliding_window_pattern: 'layer_types',
  no_rope_layer_interval: 'no_rope_layers',
}
/** Fields that change nothing in the file that the facts are about: their uses are tested apart. */
const QUIET = ['original_max_position_embeddings', 'num_ln_in_parallel_attn']
/** Without a value of their own by default; they are tested below, or refused. */
const OTHER = [
  'rope_scaling',
  'rope_parameters',
  'attention_layers',
  'layer_types',
  'sliding_window',
  'partial_rotary_factor',
]
/** Other spellings of a size. */
const SPELLINGS = ['n_embed', 'num_attention_heads', 'num_hidden_layers', 'num_local_experts']

function factsOf({ modelType }: Family): FamilyFacts {
  const own = facts.families[modelType]
  if (own === undefined) throw new Error(`config-defaults.json has no ${modelType}`)
  // The ids that families end texts with by default are inside.
  return { ...own, config: { ...own.config, vocab_size: 300_000 } }
}

function without(config: Config, ...fields: readonly (string | undefined)[]): Config {
  return Object.fromEntries(Object.entries(config).filter(([name]) => !fields.includes(name)))
}

/** What a change makes of the model, or the complaint about it. */
function parsed(config: Config): Decoder | string {
  try {
    return parseDecoder(config)
  } catch (error) {
    if (error instanceof CrowdError) return `${error.code}: ${error.message}`
    throw error
  }
}

describe('a field that config.json leaves out', () => {
  it.each(fields)('$field of $type is what transformers has', ({ field, own, family }) => {
    const given = own.absent[field]
    const config = without(own.config, OVERRULED[field])
    const absent = parsed(without(config, field))
    expect(absent).toBeTypeOf('object')
    expect(absent).toEqual(parsed({ ...config, [field]: given }))
    const ours = family.defaults[field]
    // null stands for what follows from other fields.
    if (ours !== null && ours !== undefined) expect(ours).toEqual(given)
  })

  it.each(fields)('$field of $type, null, is what transformers has', ({ field, own }) => {
    const given = own.null[field]
    const ours = parsed({ ...own.config, [field]: null })
    // Its class takes it, and no model can be built where it counts.
    const isRefused = given === 'refused' || field === 'sliding_window_pattern'
    if (isRefused) {
      // Where there's no default either, null is as good as absent.
      if (typeof ours === 'string') expect(ours).toContain(`"${field}"`)
      else expect(ours).toEqual(parsed(without(own.config, field)))
    } else if (given === null) {
      expect(ours).toBeTypeOf('object')
    } else {
      expect(ours).toEqual(parsed({ ...own.config, [field]: given }))
    }
  })

  it.each(families)('of $type is a size, refused, or among the facts', ({ family, own }) => {
    const read = new Set<string>()
    const filled = jsonFields(fillDefaults(own.config, family), 'config.json')
    const recorded = recording(filled, (name) => read.add(name))
    family.describe(recorded, family.context(recorded))
    const known = [...Object.keys(own.absent), ...NOT_OF_THE_CLASS]
    expect(Object.keys(family.defaults).filter((name) => !known.includes(name))).toEqual([])
    const rest = [...read].filter((name) => ![...known, ...OTHER].includes(name))
    for (const name of rest) {
      if (name in own.config) expect(parsed(without(own.config, name))).toContain('is missing')
      else expect(SPELLINGS).toContain(name)
    }
  })

  it.each(families)('of $type shows, in the file that the facts are about', ({ own }) => {
    const silent = Object.keys(own.absent).filter((field) => {
      if (JSON.stringify(own.absent[field]) === JSON.stringify(own.config[field])) return false
      const config = without(own.config, OVERRULED[field])
      return JSON.stringify(parsed(without(config, field))) === JSON.stringify(parsed(config))
    })
    expect(silent.filter((field) => !QUIET.includes(field))).toEqual([])
  })
})

describe('rotary settings that stand in each other’s way', () => {
  it.each(facts.rope)('$name: as transformers takes them', ({ config, layers }) => {
    const decoder = parseDecoder(config)
    for (const [kind, { frequencies, factor }] of Object.entries(layers)) {
      const rope = ropeOf(layerOf(decoder, kind))
      expectNear(inverseFrequencies(rope), frequencies)
      expect(attentionFactor(rope)).toBeCloseTo(factor, 6)
    }
  })
})

describe('windows', () => {
  it.each(facts.windows)('$name: as transformers takes them', ({ config, windows }) => {
    const ours = parsed(config)
    // Where implementations of its attention differ, we refuse.
    if (windows === 'refused') expect(ours).toMatch(/^model-(invalid|unsupported): config\.json: "/)
    else expect(typeof ours === 'string' ? ours : windowsOf(ours)).toEqual(windows)
  })
})

describe('Gemma 3 with pictures', () => {
  it.each(facts.pictures)('$name: the text part as published', ({ config, ...want }) => {
    const decoder = parseDecoder(config, undefined, want.context)
    expect(() => parseDecoder(config, undefined, want.context + 1)).toThrow(/context length/)
    const { headCount, kvHeadCount, headSize, vocabSize } = want
    expect(decoder).toMatchObject({ headCount, kvHeadCount, headSize, vocabSize })
    expect(decoder.finalNorm.epsilon).toBe(want.epsilon)
    expect(decoder.head.tied).toBe(want.tied)
    expect(decoder.eosTokenIds).toEqual([want.eosTokenIds].flat())
    expect(windowsOf(decoder)).toEqual(want.windows)
    expect(decoder.layers[0]?.attention.scale).toBeCloseTo(want.scale, 12)
    expectNear(inverseFrequencies(ropeOf(layerOf(decoder, 'full_attention'))), want.global)
    expectNear(inverseFrequencies(ropeOf(layerOf(decoder, 'sliding_attention'))), want.local)
  })

  it('is refused where it’s no text model, or quantised', () => {
    const config = facts.pictures[0]?.config ?? {}
    expect(parsed({ ...config, architectures: ['Gemma3Encoder'] })).toContain('Gemma3Encoder')
    expect(parsed({ ...config, text_config: { model_type: 'bert' } })).toContain('"bert"')
    expect(parsed({ ...config, text_config: undefined })).toContain('text_config')
    expect(parsed({ ...config, quantization_config: { bits: 4 } })).toContain('quantization_config')
  })
})

function expectNear(values: Float32Array, want: readonly number[]): void {
  expect(values).toHaveLength(want.length)
  want.forEach((value, i) => {
    expect(Math.abs((values[i] ?? NaN) - value)).toBeLessThanOrEqual(1e-6 * value)
  })
}

function windowsOf({ layers }: Decoder): number[] {
  return layers.map(({ attention }) => attention.window)
}

function layerOf({ layers }: Decoder, kind: string): LayerSpec {
  const wanted = layers.find(
    ({ attention }) => kind === 'all' || attention.window > 0 === (kind === 'sliding_attention'),
  )
  if (wanted === undefined) throw new Error(`no layer has ${kind}`)
  return wanted
}

function ropeOf({ attention }: LayerSpec): Parameters<typeof inverseFrequencies>[0] {
  const { positions } = attention
  if (positions.kind !== 'rope') throw new Error('the layer does not rotate')
  return positions.rope
}

/** Says the name of every field that is looked at. */
function recording(own: JsonFields, say: (name: string) => void): JsonFields {
  const saying =
    <T extends unknown[], R>(read: (field: string, ...rest: T) => R) =>
    (field: string, ...rest: T): R => {
      say(field)
      return read(field, ...rest)
    }
  return {
    has: saying(own.has),
    value: saying(own.value),
    integer: saying(own.integer),
    number: saying(own.number),
    boolean: saying(own.boolean),
    string: saying(own.string),
    array: saying(own.array),
    object: saying(own.object),
  }
}
