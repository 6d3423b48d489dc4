// @ts-check
import { build, ensureInstalled, runMain } from './setup.mjs'

await runMain(async () => {
  await ensureInstalled()
  await build()
})
