import { readdir, stat } from 'node:fs/promises'
import { availableParallelism } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import type { WeightDtype } from '../../sdk/core/model/manifest.ts'
import { openModelSource } from '../../sdk/import/model-source.node.ts'
import { checkModel, tokenizerOf, tokenizerProblems, type RealRow } from './check-model.ts'
import { readRealReference } from './reference.ts'

/**
 * `npm run check:real -- DIR [--json] [--stages N] [--dtypes f32,q8,q4] [--model FILE]`: downloaded models
 * (.gguf files, directories in the Hugging Face layout) against what another implementation makes of them.
 */
const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    json: { type: 'boolean', default: false },
    stages: { type: 'string', default: '3' },
    dtypes: { type: 'string', default: 'f32,f16,q8,q4' },
    /** One of the models in DIR. */
    model: { type: 'string' },
  },
})
const DTYPES = ['f32', 'f16', 'q8', 'q4'] as const
/** f32 is the reference's arithmetic; what rounds weights may lose so much perplexity against it. */
const LOSS_MAX: Readonly<Record<WeightDtype, number>> = {
  f32: 0.001,
  f16: 0.001,
  q8: 0.01,
  q4: 0.06,
}

type Checked = RealRow | { readonly model: string; readonly problems: readonly string[] }

async function modelsIn(directory: string): Promise<string[]> {
  const found: string[] = []
  for (const name of (await readdir(directory)).sort()) {
    const path = join(directory, name)
    const isModel = name.endsWith('.gguf') || (await isFile(join(path, 'config.json')))
    if (isModel && (values.model === undefined || values.model === name)) found.push(path)
  }
  return found
}

async function isFile(path: string): Promise<boolean> {
  return (await stat(path).catch(() => null))?.isFile() === true
}

function readDtypes(): WeightDtype[] {
  return values.dtypes.split(',').map((name) => {
    const dtype = DTYPES.find((known) => known === name)
    if (dtype === undefined) throw new Error(`--dtypes: ${name} is none of ${DTYPES.join(', ')}`)
    return dtype
  })
}

const threads = availableParallelism()
const started = performance.now()

function onStep(step: string): void {
  const seconds = ((performance.now() - started) / 1000).toFixed(0)
  console.error(`${seconds.padStart(4)} s  ${step}`)
}

async function* check(path: string, stages: number): AsyncGenerator<Checked> {
  const reference = await readRealReference(path)
  const source = await openModelSource(path)
  try {
    const problems = tokenizerProblems(await tokenizerOf(source), reference)
    if (problems.length > 0) yield { model: source.name, problems }
    for (const dtype of readDtypes()) {
      yield await checkModel(source, reference, { dtype, stages, threads, onStep })
    }
  } finally {
    await source.close()
  }
}

function isRight(row: Checked): boolean {
  if ('problems' in row) return false
  const { dtype, perplexity, referencePerplexity, splitEqualsWhole } = row
  return splitEqualsWhole && perplexity <= referencePerplexity * (1 + LOSS_MAX[dtype])
}

function line(row: Checked): string {
  if ('problems' in row) return `${row.model}: other token ids\n  ${row.problems.join('\n  ')}`
  const { model, dtype, perplexity, referencePerplexity, topAgreement } = row
  const loss = (perplexity / referencePerplexity - 1) * 100
  return [
    `${model} ${dtype}: perplexity ${perplexity.toFixed(3)} (${loss.toFixed(2)} % above ${row.reference})`,
    `top-1 ${(topAgreement * 100).toFixed(1)} %`,
    `${row.samePrompts} of ${row.prompts} continuations`,
    row.splitEqualsWhole ? 'split = whole' : 'SPLIT DIFFERS',
    `(losses differ by ${row.splitLossError.toExponential(1)})`,
  ].join(', ')
}

async function main(): Promise<Checked[]> {
  const [directory] = positionals
  const stages = Number(values.stages)
  if (directory === undefined || !(stages >= 1)) {
    throw new Error(
      'use: check:real -- DIR [--json] [--stages N] [--dtypes f32,q8,q4] [--model FILE]',
    )
  }
  const models = await modelsIn(directory)
  if (models.length === 0) throw new Error(`there is no such model in ${directory}`)
  const rows: Checked[] = []
  for (const path of models) {
    for await (const row of check(path, stages)) {
      rows.push(row)
      if (!values.json) console.log(line(row))
    }
  }
  return rows
}

try {
  const rows = await main()
  if (values.json) console.log(JSON.stringify(rows))
  process.exitCode = rows.every(isRight) ? 0 : 1
} catch (error) {
  console.error(error instanceof Error ? error.message : error)
  process.exitCode = 1
}
