import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { isRecord } from '../../sdk/core/model/json-fields.ts'

/** What an implementation that isn't ours computes for a checkpoint. */
export type Reference = {
  readonly name: string
  readonly directory: string
  /** `model_type` of its config.json. */
  readonly modelType: string
  readonly promptIds: readonly number[]
  readonly greedyIds: readonly number[]
  readonly vocabSize: number
  /** One row per token of the prompt and of the answer but its last. */
  readonly logits: readonly Float32Array[]
}

const ROOT = fileURLToPath(new URL('../fixtures/reference/', import.meta.url))

/** Names of the checkpoints in the Hugging Face layout that come with reference results. */
export async function checkpointNames(): Promise<string[]> {
  const found: string[] = []
  for (const entry of await readdir(ROOT, { withFileTypes: true })) {
    const files: readonly string[] = await readdir(join(ROOT, entry.name))
    if (files.includes('config.json') && files.includes('reference.json')) found.push(entry.name)
  }
  return found.sort()
}

export async function readReference(name: string): Promise<Reference> {
  const directory = join(ROOT, name)
  const json: unknown = JSON.parse(await readFile(join(directory, 'reference.json'), 'utf8'))
  const config: unknown = JSON.parse(await readFile(join(directory, 'config.json'), 'utf8'))
  if (!isRecord(json) || !isRecord(config)) throw new Error(`${name} holds JSON that is no object`)
  const vocabSize = Number(json['vocabSize'])
  const bytes = await readFile(join(directory, 'logits.f32'))
  const values = new Float32Array(new Uint8Array(bytes).buffer)
  const rows = Array.from({ length: values.length / vocabSize }, (_, row) =>
    values.subarray(row * vocabSize, (row + 1) * vocabSize),
  )
  return {
    name,
    directory,
    modelType: String(config['model_type']),
    promptIds: idsOf(json['promptIds']),
    greedyIds: idsOf(json['greedyIds']),
    vocabSize,
    logits: rows,
  }
}

function idsOf(value: unknown): number[] {
  if (!Array.isArray(value)) throw new Error('reference.json has no ids')
  return value.map(Number)
}
