// @ts-check
// A reporter for Vitest that keeps what failed, in few lines: a log of thousands of tests is often read from its end only.
import { appendFileSync } from 'node:fs'
import process from 'node:process'

/** Lines of an error that are kept: the first says what was wrong, the stack says where. */
const ERROR_LINES = 4

/** Appends to the file that `CROWDINFER_FAILURES` names one entry for each thing that failed. */
export default class FailuresReporter {
  /** @type {import('vitest/reporters').Reporter['onTestRunEnd']} */
  onTestRunEnd(modules, unhandledErrors) {
    const path = process.env['CROWDINFER_FAILURES']
    const entries = failuresOf(modules, unhandledErrors)
    if (path !== undefined && entries.length > 0) appendFileSync(path, entries.join('\n') + '\n')
  }
}

/**
 * What failed: tests, files that failed outside of their tests, and errors outside of both.
 * @param {Parameters<NonNullable<import('vitest/reporters').Reporter['onTestRunEnd']>>[0]} modules
 * @param {readonly {message: string, stack?: string}[]} unhandledErrors
 */
export function failuresOf(modules, unhandledErrors) {
  const ofModules = modules.flatMap((module) => [
    ...module.errors().map((error) => entry(module.relativeModuleId, error)),
    ...[...module.children.allTests('failed')].map((test) =>
      entry(`${module.relativeModuleId} > ${test.fullName}`, test.result().errors?.[0]),
    ),
  ])
  return [...ofModules, ...unhandledErrors.map((error) => entry('outside of the tests', error))]
}

/** @param {string} what @param {{message: string, stack?: string} | undefined} error */
function entry(what, error) {
  const stack = (error?.stack ?? '').split('\n').filter((line) => /^\s*at /.test(line))
  const lines = [...(error?.message ?? '').split('\n'), ...stack]
  return [what, ...lines.slice(0, ERROR_LINES).map((line) => `  ${line.trim()}`)].join('\n')
}
