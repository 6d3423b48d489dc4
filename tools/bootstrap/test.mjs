// @ts-check
// `npm test`: set up what is missing, a browser included, then every test. Never skips silently.
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import process from 'node:process'
import { findBrowser } from './browser.mjs'
import { ensureBuilt, ensureInstalled, node, runMain, say, spawned } from './setup.mjs'

await runMain(async () => {
  await ensureInstalled()
  await ensureBrowser()
  await ensureBuilt()
  await node([join('node_modules', 'vitest', 'vitest.mjs'), 'run', ...process.argv.slice(2)])
})

async function ensureBrowser() {
  if (findBrowser() !== null) return
  if (process.env['CROWDINFER_BROWSER']) {
    throw new Error(`CROWDINFER_BROWSER names no file: ${process.env['CROWDINFER_BROWSER']}`)
  }
  if (!existsSync('/etc/debian_version') || process.getuid?.() !== 0) {
    throw new Error(
      'the tests need Chromium, Chrome or Edge: install one, or set CROWDINFER_BROWSER to its path (as root on Debian it is installed for you).',
    )
  }
  say('installing Chromium from Debian')
  await spawned('apt-get', ['update', '-qq'])
  await spawned('apt-get', ['install', '-y', '-qq', '--no-install-recommends', 'chromium'])
  if (findBrowser() === null)
    throw new Error('Chromium was installed but is not where it was expected.')
}
