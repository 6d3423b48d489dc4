// @ts-check
// Runs a TypeScript tool of the repository (smoke, bench, score) after setting up what is missing;
// with --browser before its path, a browser too.
import { spawn } from 'node:child_process'
import { join } from 'node:path'
import process from 'node:process'
import { ensureBrowser } from './ensure-browser.mjs'
import { ensureBuilt, ensureInstalled, root, runMain } from './setup.mjs'

await runMain(async () => {
  const args = process.argv.slice(2)
  const needsBrowser = args[0] === '--browser'
  const [script = '', ...rest] = needsBrowser ? args.slice(1) : args
  await ensureInstalled()
  if (needsBrowser) await ensureBrowser()
  await ensureBuilt()
  const child = spawn(process.execPath, ['--import', 'tsx', join(root, script), ...rest], {
    cwd: root,
    stdio: 'inherit',
  })
  process.on('SIGINT', () => child.kill('SIGINT'))
  process.exitCode = await new Promise((resolve) => {
    child.on('exit', (code) => resolve(code ?? 1))
  })
})
