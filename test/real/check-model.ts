import * as ort from 'onnxruntime-node'
import { createTokenizer } from '../../sdk/client/tokenizer.hf.ts'
import type { Tokenizer } from '../../sdk/client/tokenizer.ts'
import { baseNames } from '../../sdk/core/families/base-names.ts'
import { parseDecoder } from '../../sdk/core/families/parse-decoder.ts'
import { evenRanges } from '../../sdk/core/model/even-ranges.ts'
import { PREFILL_CHUNK_TOKENS } from '../../sdk/core/limits.ts'
import type { WeightDtype } from '../../sdk/core/model/manifest.ts'
import type { ModelSource } from '../../sdk/import/model-source.ts'
import { openBlocks, openWhole, type Decoder } from '../support/chained-blocks.ts'
import { assembleTestModel, type TestModel } from '../support/models.ts'
import { createMadeWeights } from './made-weights.ts'
import { followText, greedyIds, perplexityOf, type TextMeasure } from './measure.ts'
import type { RealReference } from './reference.ts'

/** One row of `npm run check:real`. */
export type RealRow = {
  readonly model: string
  /** Who made the reference. */
  readonly reference: string
  readonly dtype: WeightDtype
  readonly perplexity: number
  readonly referencePerplexity: number
  /** Share of the text's tokens after which the reference's likeliest token is ours too. */
  readonly topAgreement: number
  /** Prompts of which the whole continuation is the reference's. */
  readonly samePrompts: number
  readonly prompts: number
  /** The same continuations, and the same likeliest token everywhere in the text. */
  readonly splitEqualsWhole: boolean
  /** Largest difference of −ln p between split and whole over the text's tokens. */
  readonly splitLossError: number
}

/** Where our ids are not the reference's; empty = none. */
export function tokenizerProblems(tokenizer: Tokenizer, reference: RealReference): string[] {
  const { prompts, text, textIds, question, questionIds } = reference
  const cases = [
    ...prompts.map((prompt) => ({ what: prompt.text, ids: prompt.ids })),
    { what: text, ids: textIds },
  ].map(({ what, ids }) => ({ what, ids, own: tokenizer.encode(what) }))
  if (questionIds !== null) {
    const own = tokenizer.encodeChat([{ role: 'user', content: question }])
    cases.push({ what: `the chat "${question}"`, ids: questionIds, own })
  }
  return cases.flatMap(({ what, ids, own }) => {
    const at = ids.findIndex((id, i) => own[i] !== id)
    if (at < 0 && own.length === ids.length) return []
    const where = at < 0 ? Math.min(ids.length, own.length) : at
    return `${JSON.stringify(what.slice(0, 40))}: token ${where} is ${own[where]}, the reference has ${ids[where]}`
  })
}

export async function tokenizerOf(source: ModelSource): Promise<Tokenizer> {
  const text = async (file: string): Promise<string | undefined> => {
    const read = source.files.get(file)
    return read && new TextDecoder().decode(await read())
  }
  const json = async (file: string): Promise<unknown> => JSON.parse((await text(file)) ?? 'null')
  return createTokenizer({
    tokenizerJson: await json('tokenizer.json'),
    tokenizerConfig: await json('tokenizer_config.json'),
    chatTemplate: await text('chat_template.jinja'),
  })
}

export type CheckOptions = {
  readonly dtype: WeightDtype
  readonly stages: number
  readonly threads: number
  /** Hears what comes next. */
  readonly onStep: (step: string) => void
}

/** The model in one dtype, unsplit and as a chain of `stages`, against the reference. */
export async function checkModel(
  source: ModelSource,
  reference: RealReference,
  options: CheckOptions,
): Promise<RealRow> {
  const { dtype, stages, threads } = options
  const model = openDtype(source, reference, dtype)
  const { vocabSize, layers } = model.decoder
  const told = (part: string) => (step: string) => {
    options.onStep(`${source.name} ${dtype} ${part}: ${step}`)
  }
  told('blocks')('making weights')
  const blocks = await openBlocks(ort, model, { provider: 'cpu', threads })
  told('whole')('making weights')
  const unsplit =
    dtype === 'q4'
      ? // int8 activations: one bit of an input that differs ends in other roundings everywhere, also in one graph.
        blocks.chain({ cuts: [] })
      : // Lowered: the runtime's own product of 8-bit weights takes an hour for this.
        await openWhole(ort, model, 'cpu', { threads, lowered: true })
  const expected = reference.prompts.map((prompt) => prompt.greedyIds)
  const whole = await measure(unsplit, reference, {
    vocabSize,
    expected,
    onStep: told('whole'),
  })
  const cuts = evenRanges(layers.length, stages).map((range) => range.start)
  const split = await measure(blocks.chain({ cuts }), reference, {
    vocabSize,
    // The same steps where a kernel for one token rounds otherwise than that for many; else as fast as can be.
    expected: dtype === 'q4' ? expected : whole.greedy,
    onStep: told(`in ${stages} stages`),
  })
  await blocks.close()
  return {
    model: source.name,
    reference: reference.by,
    dtype,
    perplexity: perplexityOf(whole.text),
    referencePerplexity: reference.perplexity,
    topAgreement: shareOfSame(whole.text.likeliestIds, reference.likeliestIds),
    samePrompts: reference.prompts.filter(({ greedyIds: ids }, i) => same(ids, whole.greedy[i]))
      .length,
    prompts: reference.prompts.length,
    splitEqualsWhole:
      split.greedy.every((ids, i) => same(ids, whole.greedy[i])) &&
      same(split.text.likeliestIds, whole.text.likeliestIds),
    splitLossError: Math.max(
      ...split.text.losses.map((loss, i) => Math.abs(loss - (whole.text.losses[i] ?? NaN))),
    ),
  }
}

/** With a context that holds the texts: caches of a published length are slow to hand over. */
export function openDtype(
  source: ModelSource,
  reference: RealReference,
  dtype: WeightDtype,
): TestModel {
  const longest = Math.max(
    reference.textIds.length,
    ...reference.prompts.map(({ ids, greedyIds: more }) => ids.length + more.length),
  )
  const decoder = parseDecoder(source.config, source.generationConfig, longest)
  const { collect } = createMadeWeights(baseNames(source.weights))
  return assembleTestModel(decoder, dtype, collect)
}

type Measured = { readonly text: TextMeasure; readonly greedy: readonly number[][] }

/** Closes the decoder. */
async function measure(
  decoder: Decoder,
  reference: RealReference,
  options: {
    readonly vocabSize: number
    readonly expected: readonly (readonly number[])[]
    readonly onStep: (step: string) => void
  },
): Promise<Measured> {
  const { vocabSize, expected, onStep } = options
  const chunk = PREFILL_CHUNK_TOKENS
  onStep('following the text')
  const text = await followText(decoder, reference.textIds, { vocabSize, chunk })
  const greedy: number[][] = []
  for (const [i, { ids }] of reference.prompts.entries()) {
    onStep(`prompt ${i + 1} of ${reference.prompts.length}`)
    greedy.push(await greedyIds(decoder, ids, expected[i] ?? [], vocabSize))
  }
  await decoder.close()
  return { text, greedy }
}

function same(a: readonly number[], b: readonly number[] | undefined): boolean {
  return a.length === b?.length && a.every((id, i) => id === b[i])
}

function shareOfSame(a: readonly number[], b: readonly number[]): number {
  return a.filter((id, i) => id === b[i]).length / Math.max(a.length, b.length)
}
