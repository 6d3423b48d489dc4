// @ts-check
// `npm run build`, also before packing: everything anew, so that nothing of a deleted source is left.
import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { build, ensureInstalled, root, runMain } from './setup.mjs'

await runMain(async () => {
  await ensureInstalled()
  rmSync(join(root, 'dist'), { recursive: true, force: true })
  await build()
})
