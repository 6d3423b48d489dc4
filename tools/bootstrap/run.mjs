// @ts-check
// Runs a TypeScript tool of the repository (smoke, bench, score) after setting up what is missing;
// with --browser before its path, a browser too, unless the tool was told to use no tabs; with
// --browser=--real,--soak only where one of these flags is given.
import { spawn } from 'node:child_process'
import { join } from 'node:path'
import process from 'node:process'
import { ensureBrowser } from './ensure-browser.mjs'
import { ensureBuilt, ensureInstalled, root, runMain } from './setup.mjs'

await runMain(async () => {
  const args = process.argv.slice(2)
  const [option = '', flags] = (args[0] ?? '').split('=')
  const mayUseBrowser = option === '--browser'
  const [script = '', ...rest] = mayUseBrowser ? args.slice(1) : args
  const usesTabs = flags?.split(',').some((flag) => rest.includes(flag)) ?? !isWithoutTabs(rest)
  await ensureInstalled()
  if (mayUseBrowser && usesTabs) await ensureBrowser()
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

/** `--tabs 0`, or workers (`--workers N`) and nothing about tabs, or `--node`. @param {string[]} flags */
function isWithoutTabs(flags) {
  const valueOf = (/** @type {string} */ name) => {
    const at = flags.indexOf(name)
    const joined = flags.find((flag) => flag.startsWith(`${name}=`))
    return at >= 0 ? flags[at + 1] : joined?.slice(name.length + 1)
  }
  const tabs = valueOf('--tabs')
  if (flags.includes('--node') || tabs === '0') return true
  return tabs === undefined && !['0', undefined].includes(valueOf('--workers'))
}
