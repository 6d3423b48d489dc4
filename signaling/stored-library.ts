import { readdir, readFile, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { CrowdError, toCrowdError } from '../sdk/core/errors.ts'
import { LAYERS_MAX, PROMPT_MAX_TOKENS } from '../sdk/core/limits.ts'
import { jsonFields } from '../sdk/core/model/json-fields.ts'
import { blockPieces, type Manifest } from '../sdk/core/model/manifest.ts'
import type { ImportProgress } from '../sdk/import/import-options.ts'
import { MANIFEST_FILE, readManifest } from '../sdk/import/model-store.node.ts'
import { parseJson } from '../sdk/import/safetensors-source.node.ts'
import { builtinModels } from '../sdk/import/resolve-model.node.ts'
import { storeModel } from '../sdk/import/stored-model.node.ts'
import type { HostedModel } from './hosted-model.ts'
import type { KnownModel, ModelLibrary, ModelSize } from './model-library.ts'

/** The built-in models and those that lie cut in the data folder. */
export function createStoredLibrary(folders: {
  readonly builtinDir: string
  readonly dataDir: string
}): ModelLibrary {
  const { builtinDir, dataDir } = folders
  const storeOf = (name: string): string => join(dataDir, 'models', name)

  async function stored(): Promise<string[]> {
    const entries = await readdir(join(dataDir, 'models'), { withFileTypes: true }).catch(() => [])
    // What begins with a dot is being removed.
    const names = entries
      .filter((entry) => entry.isDirectory() && !entry.name.startsWith('.'))
      .map((entry) => entry.name)
    const cut = await Promise.all(names.map((name) => isFile(join(storeOf(name), MANIFEST_FILE))))
    return names.filter((_, index) => cut[index])
  }

  async function known(name: string, isBuiltin: boolean): Promise<KnownModel> {
    try {
      const cut = readManifest(storeOf(name))
      // A built-in model that isn't cut yet, or badly, is cut when it is opened.
      const manifest = isBuiltin ? await cut.catch(() => null) : await cut
      const size =
        manifest === null ? await sizeOfSource(join(builtinDir, name)) : sizeOfManifest(manifest)
      return { name, isBuiltin, size, problem: '' }
    } catch (thrown) {
      return { name, isBuiltin, size: null, problem: toCrowdError(thrown).message }
    }
  }

  return {
    async list() {
      const builtin = await builtinModels(builtinDir)
      const others = (await stored()).filter((name) => !builtin.includes(name)).sort()
      return await Promise.all([
        ...builtin.map((name) => known(name, true)),
        ...others.map((name) => known(name, false)),
      ])
    },
    async open(name, onStep) {
      if ((await builtinModels(builtinDir)).includes(name)) {
        onStep(`cutting ${name} into blocks, unless that was done before`)
        const progress = ({ doneBlocks, totalBlocks }: ImportProgress): void =>
          onStep(`cutting ${name}: ${doneBlocks} of ${totalBlocks} blocks are done`)
        const { manifest, storeDir } = await storeModel(name, dataDir, { progress })
        return { name, isBuiltin: true, manifest, directory: storeDir }
      }
      if (!(await stored()).includes(name))
        throw new CrowdError('model-not-found', `this host knows no model "${name.slice(0, 80)}"`)
      return await openStored(name, storeOf(name), onStep)
    },
  }
}

/** A model whose files are not all there would leave the devices without them later. */
async function openStored(
  name: string,
  directory: string,
  onStep: (step: string) => void,
): Promise<HostedModel> {
  const manifest = await readManifest(directory)
  const pieces = [...manifest.blocks.flatMap(blockPieces), ...Object.values(manifest.files)]
  onStep(`looking for the ${pieces.length} files of ${name}`)
  for (const { sha256, bytes } of pieces) {
    const info = await stat(join(directory, 'pieces', sha256)).catch(() => null)
    if (info?.size !== bytes)
      throw new CrowdError('model-invalid', `${name}: the piece ${sha256} is missing or cut short`)
  }
  return { name, isBuiltin: false, manifest, directory }
}

function sizeOfManifest({ layerCount, contextLength, blocks }: Manifest): ModelSize {
  const pieces = blocks.flatMap(blockPieces).map((piece) => [piece.sha256, piece.bytes] as const)
  // A tied table is one piece in two blocks.
  const bytes = [...new Map(pieces).values()].reduce((sum, one) => sum + one, 0)
  return { layerCount, contextLength, bytes }
}

/** Before a built-in model is cut: what its files say. @throws CrowdError model-invalid */
async function sizeOfSource(directory: string): Promise<ModelSize> {
  const text = await readFile(join(directory, 'config.json'), 'utf8')
  const config = jsonFields(parseJson(text, 'config.json'), 'config.json')
  const files = (await readdir(directory)).filter((file) => file.endsWith('.safetensors'))
  const sizes = await Promise.all(files.map((file) => stat(join(directory, file))))
  return {
    layerCount: config.integer('num_hidden_layers', { min: 1, max: LAYERS_MAX }),
    contextLength: config.integer('max_position_embeddings', { min: 1, max: PROMPT_MAX_TOKENS }),
    bytes: sizes.reduce((sum, { size }) => sum + size, 0),
  }
}

async function isFile(path: string): Promise<boolean> {
  return stat(path).then(
    (info) => info.isFile(),
    () => false,
  )
}
