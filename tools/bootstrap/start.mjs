// @ts-check
// `npm start`: set up what is missing, then the host. Flags after `--` are the host's.
import process from 'node:process'
import { ensureBuilt, ensureInstalled, runMain } from './setup.mjs'

await runMain(async () => {
  await ensureInstalled()
  await ensureBuilt()
  process.argv.splice(2, 0, 'start')
  await import('../../dist/signaling/main.js')
})
