// @ts-check
// `npm test`: set up what is missing, a browser included, then every test. Never skips silently.
import { join } from 'node:path'
import process from 'node:process'
import { ensureBrowser } from './ensure-browser.mjs'
import { ensureBuilt, ensureInstalled, node, runMain } from './setup.mjs'

await runMain(async () => {
  await ensureInstalled()
  await ensureBrowser()
  await ensureBuilt()
  await node([join('node_modules', 'vitest', 'vitest.mjs'), 'run', ...process.argv.slice(2)])
})
