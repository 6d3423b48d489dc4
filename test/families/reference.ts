import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { isRecord } from '../../sdk/core/model/json-fields.ts'

/** What an implementation that isn't ours computes for a published file. */
export type Reference = {
  /** Name of its folder: the family, and what is special. */
  readonly name: string
  readonly source: 'safetensors' | 'gguf'
  readonly path: string
  readonly promptIds: readonly number[]
  readonly greedyIds: readonly number[]
  readonly vocabSize: number
  /** One row per token of the prompt and of the answer but its last. */
  readonly logits: readonly Float32Array[]
}

const ROOT = fileURLToPath(new URL('../fixtures/reference/', import.meta.url))

/** Folders with reference results, by what the model is stored as. */
export async function listReferences(): Promise<Pick<Reference, 'name' | 'source'>[]> {
  const checkpoints = await foldersWith(ROOT, 'config.json')
  const files = await foldersWith(join(ROOT, 'gguf'), 'model.gguf')
  return [
    ...checkpoints.map((name) => ({ name, source: 'safetensors' }) as const),
    ...files.map((name) => ({ name, source: 'gguf' }) as const),
  ]
}

async function foldersWith(root: string, file: string): Promise<string[]> {
  const found: string[] = []
  for (const name of (await readdir(root)).sort()) {
    const files: readonly string[] = await readdir(join(root, name)).catch(() => [])
    if (files.includes(file) && files.includes('reference.json')) found.push(name)
  }
  return found
}

export async function readReference(entry: Pick<Reference, 'name' | 'source'>): Promise<Reference> {
  const isFile = entry.source === 'gguf'
  const directory = join(ROOT, ...(isFile ? ['gguf'] : []), entry.name)
  const json: unknown = JSON.parse(await readFile(join(directory, 'reference.json'), 'utf8'))
  if (!isRecord(json)) throw new Error(`${entry.name}: reference.json is no object`)
  const vocabSize = Number(json['vocabSize'])
  const bytes = await readFile(join(directory, 'logits.f32'))
  const values = new Float32Array(new Uint8Array(bytes).buffer)
  return {
    ...entry,
    path: isFile ? join(directory, 'model.gguf') : directory,
    promptIds: idsOf(json['promptIds']),
    greedyIds: idsOf(json['greedyIds']),
    vocabSize,
    logits: Array.from({ length: values.length / vocabSize }, (_, row) =>
      values.subarray(row * vocabSize, (row + 1) * vocabSize),
    ),
  }
}

function idsOf(value: unknown): number[] {
  if (!Array.isArray(value)) throw new Error('reference.json has no ids')
  return value.map(Number)
}
