import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { builtinDirectory } from '../../sdk/import/stored-model.node.ts'
import { COMMIT } from './hub-kit.ts'
import { fakeFile, type FakeRepo } from './hub-server.ts'

/** A built-in model as somebody would publish it. */
export async function publishedModel(name = 'crowdtalk-0.3m'): Promise<FakeRepo> {
  const directory = join(builtinDirectory(), name)
  const files = await Promise.all(
    (await readdir(directory)).map(async (file) => {
      const isLarge = file.endsWith('.safetensors')
      return [file, fakeFile(await readFile(join(directory, file)), isLarge)] as const
    }),
  )
  return { commit: COMMIT, files: Object.fromEntries(files) }
}
