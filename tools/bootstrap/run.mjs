// @ts-check
// Runs a TypeScript tool of the repository (smoke, bench, score) after setting up what is missing.
import { spawn } from 'node:child_process'
import { join } from 'node:path'
import process from 'node:process'
import { ensureBuilt, ensureInstalled, root, runMain } from './setup.mjs'

await runMain(async () => {
  const [script = '', ...args] = process.argv.slice(2)
  await ensureInstalled()
  await ensureBuilt()
  const child = spawn(process.execPath, ['--import', 'tsx', join(root, script), ...args], {
    cwd: root,
    stdio: 'inherit',
  })
  process.on('SIGINT', () => child.kill('SIGINT'))
  process.exitCode = await new Promise((resolve) => {
    child.on('exit', (code) => resolve(code ?? 1))
  })
})
