// @ts-check
// `npm test`: set up what is missing, a browser included, then every test. Never skips silently.
import { spawnSync } from 'node:child_process'
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import process from 'node:process'
import { ensureBrowser } from './ensure-browser.mjs'
import { ensureBuilt, ensureInstalled, node, root, runMain, say } from './setup.mjs'

/** One after the other: rings of real tabs and a pool of test threads would fight for the same cores. */
const PROJECTS = ['node', 'browser', 'e2e']
const vitest = join(root, 'node_modules', 'vitest', 'vitest.mjs')
const reporter = join(root, 'tools', 'bootstrap', 'failures.mjs')

await runMain(async () => {
  const filters = process.argv.slice(2)
  await ensureInstalled()
  await ensureBrowser()
  await ensureBuilt()
  /** @type {string[]} */
  const failed = []
  const projects = filters.length === 0 ? PROJECTS : PROJECTS.filter((one) => matches(one, filters))
  if (projects.length === 0) throw new Error(`no test file matches ${filters.join(' ')}`)
  const folder = mkdtempSync(join(tmpdir(), 'crowdinfer-test-'))
  const failures = join(folder, 'failures')
  process.env['CROWDINFER_FAILURES'] = failures
  for (const project of projects) {
    const args = ['run', '--project', project, '--reporter=default', `--reporter=${reporter}`]
    await node([vitest, ...args, ...filters]).catch(() => failed.push(project))
  }
  if (existsSync(failures)) say(`what failed:\n${readFileSync(failures, 'utf8')}`)
  rmSync(folder, { recursive: true, force: true })
  if (failed.length > 0) throw new Error(`tests failed in: ${failed.join(', ')}`)
})

/** Whether a filter fits files of this project: most fit those of one only. @param {string} project @param {string[]} filters */
function matches(project, filters) {
  const args = [vitest, 'list', '--filesOnly', '--project', project, ...filters]
  const { status, stdout } = spawnSync(process.execPath, args, { cwd: root, encoding: 'utf8' })
  // What vitest does not understand it says itself when it runs.
  return status !== 0 || stdout.trim() !== ''
}
