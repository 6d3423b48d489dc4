// @ts-check
import { existsSync } from 'node:fs'
import process from 'node:process'
import { findBrowser } from './browser.mjs'
import { say, spawned } from './setup.mjs'

/** Finds a browser; as root on Debian it installs Chromium. Fails with one sentence otherwise. */
export async function ensureBrowser() {
  if (findBrowser() !== null) return
  if (process.env['CROWDINFER_BROWSER']) {
    throw new Error(`CROWDINFER_BROWSER names no file: ${process.env['CROWDINFER_BROWSER']}`)
  }
  if (!existsSync('/etc/debian_version') || process.getuid?.() !== 0) {
    throw new Error(
      'this needs Chromium, Chrome or Edge: install one, or set CROWDINFER_BROWSER to its path (as root on Debian it is installed for you).',
    )
  }
  say('installing Chromium from Debian')
  await spawned('apt-get', ['update', '-qq'])
  await spawned('apt-get', ['install', '-y', '-qq', '--no-install-recommends', 'chromium'])
  if (findBrowser() === null) {
    throw new Error('Chromium was installed but is not where it was expected.')
  }
}
