// @ts-check
// `npm test`: set up what is missing, a browser included, then every test. Never skips silently.
import { join } from 'node:path'
import process from 'node:process'
import { ensureBrowser } from './ensure-browser.mjs'
import { ensureBuilt, ensureInstalled, node, runMain } from './setup.mjs'

/** One after the other: rings of real tabs and a pool of test threads would fight for the same cores. */
const PROJECTS = ['node', 'browser', 'e2e']

await runMain(async () => {
  const filters = process.argv.slice(2)
  await ensureInstalled()
  await ensureBrowser()
  await ensureBuilt()
  /** @type {string[]} */
  const failed = []
  for (const project of PROJECTS) {
    const args = ['run', '--project', project, ...filters]
    // A filter may fit the files of one project only.
    if (filters.length > 0) args.push('--passWithNoTests')
    await node([join('node_modules', 'vitest', 'vitest.mjs'), ...args]).catch(() =>
      failed.push(project),
    )
  }
  if (failed.length > 0) throw new Error(`tests failed in: ${failed.join(', ')}`)
})
