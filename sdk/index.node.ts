import { createTokenizer } from './client/tokenizer.hf.ts'
import type { Tokenizer } from './client/tokenizer.ts'
import type { Manifest } from './core/model/manifest.ts'
import { dataDirectory } from './import/data-directory.node.ts'
import { readBlock, readPiece } from './import/model-store.node.ts'
import { storeModel, type StoredModel } from './import/stored-model.node.ts'
import { openLocalChain, type LocalChain } from './local/local-chain.ts'
import { createNodeStageRunner } from './runtime/ort.node.ts'

export { createClient } from './client/client.ts'
export type { Client } from './client/client-types.ts'
export type { Tokenizer } from './client/tokenizer.ts'
export { builtinDirectory } from './import/stored-model.node.ts'
export type { LocalAnswer, LocalChain, LocalRequest } from './local/local-chain.ts'

/** A model on this machine's disk, cut into blocks and ready to serve or to run. */
export type OpenedModel = StoredModel & { readonly tokenizer: Tokenizer }

/**
 * Opens a model by built-in name or by directory; cuts it first where that wasn't done yet.
 * @throws CrowdError model-not-found, model-invalid, model-unsupported
 */
export async function openModel(
  nameOrPath: string,
  dataDir = dataDirectory(),
): Promise<OpenedModel> {
  const model = await storeModel(nameOrPath, dataDir)
  return { ...model, tokenizer: await openTokenizer(model.storeDir, model.manifest) }
}

/** The tokenizer that lies beside a stored model's pieces. @throws CrowdError model-invalid, model-unsupported */
export async function openTokenizer(storeDir: string, manifest: Manifest): Promise<Tokenizer> {
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
