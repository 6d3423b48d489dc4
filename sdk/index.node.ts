import { homedir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { createTokenizer } from './client/tokenizer.hf.ts'
import type { Tokenizer } from './client/tokenizer.ts'
import type { Manifest } from './core/model/manifest.ts'
import { importModel } from './import/import-model.node.ts'
import { readBlock, readPiece } from './import/model-store.node.ts'
import { resolveModel } from './import/resolve-model.node.ts'
import { openLocalChain, type LocalChain } from './local/local-chain.ts'
import { createNodeStageRunner } from './runtime/ort.node.ts'

export type { LocalAnswer, LocalChain, LocalRequest } from './local/local-chain.ts'

/** Where the built-in models lie, both in the clone (sdk/) and in the built package (dist/sdk/). */
export function builtinDirectory(): string {
  const here = fileURLToPath(new URL('.', import.meta.url))
  const root = /[\\/]dist[\\/]sdk[\\/]$/.test(here) ? '../..' : '..'
  return join(here, root, 'public', 'models')
}

/** Where imported models and the host's own files are kept. */
export function defaultDataDirectory(): string {
  return process.env['CROWDINFER_DATA'] ?? join(homedir(), '.crowdinfer')
}

/** A model on this machine's disk, cut into blocks and ready to serve or to run. */
export type OpenedModel = {
  readonly name: string
  readonly storeDir: string
  readonly manifest: Manifest
  readonly tokenizer: Tokenizer
}

/**
 * Opens a model by built-in name or by directory; cuts it first where that wasn't done yet.
 * @throws CrowdError model-not-found, model-invalid, model-unsupported
 */
export async function openModel(
  nameOrPath: string,
  dataDir = defaultDataDirectory(),
): Promise<OpenedModel> {
  const { name, directory } = await resolveModel(nameOrPath, builtinDirectory())
  const storeDir = join(dataDir, 'models', name)
  const manifest = await importModel(directory, storeDir)
  return { name, storeDir, manifest, tokenizer: await openTokenizer(storeDir, manifest) }
}

async function openTokenizer(storeDir: string, manifest: Manifest): Promise<Tokenizer> {
  const text = async (file: string): Promise<string | undefined> => {
    const piece = manifest.files[file]
    if (piece === undefined) return undefined
    return new TextDecoder().decode(await readPiece(storeDir, piece.sha256))
  }
  const json = async (file: string): Promise<unknown> => {
    const found = await text(file)
    return found === undefined ? undefined : JSON.parse(found)
  }
  return createTokenizer({
    tokenizerJson: await json('tokenizer.json'),
    tokenizerConfig: await json('tokenizer_config.json'),
    chatTemplate: await text('chat_template.jinja'),
  })
}

/** The model in this process, cut into `stages`. */
export async function openChain(model: OpenedModel, stages: number): Promise<LocalChain> {
  return await openLocalChain({
    manifest: model.manifest,
    stages,
    makeRunner: () => createNodeStageRunner(),
    readBlock: (block) => readBlock(model.storeDir, model.manifest, block),
  })
}
