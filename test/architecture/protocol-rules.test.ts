import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'

const ROOT = fileURLToPath(new URL('../..', import.meta.url))
const RULES_FILE = 'sdk/core/wire/PROTOCOL.md'
/** Of test() and it(), with .each() and such before the title too. */
const TITLE = /(?:\b(?:test|it)|\))\(\s*['"`]((?:[A-Z]{2}\d+ )+)/g
const TEST_FOLDERS = ['sdk', 'signaling', 'test', 'web']

/** Rule ids stand in bold at the start of a list item. */
function ruleIds(): string[] {
  const text = readFileSync(join(ROOT, RULES_FILE), 'utf8')
  return [...text.matchAll(/^- \*\*([A-Z]{2}\d+)\*\* /gm)].map((match) => match[1]!)
}

/** Ids at the start of a title, e.g. `test('FR3 refuses …')`; a title may quote several. */
function quotedIds(): Set<string> {
  const quoted = new Set<string>()
  for (const file of TEST_FOLDERS.flatMap((folder) => testFiles(join(ROOT, folder)))) {
    const titles = readFileSync(file, 'utf8').matchAll(TITLE)
    for (const title of titles) for (const id of title[1]!.trim().split(' ')) quoted.add(id)
  }
  return quoted
}

function testFiles(folder: string): string[] {
  return readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .filter((name) => /\.(test|contract)\.ts$/.test(name) && !name.includes('node_modules'))
    .map((name) => join(folder, name))
}

test('rule ids are unique and count from 1 without a gap', () => {
  const ids = ruleIds()
  expect(new Set(ids).size).toBe(ids.length)
  const families = groupByFamily(ids)
  for (const [family, members] of families) {
    expect(members).toEqual(members.map((_, index) => `${family}${index + 1}`))
  }
})

test('every rule of the protocol is quoted by a test', () => {
  const quoted = quotedIds()
  expect(ruleIds().filter((id) => !quoted.has(id))).toEqual([])
})

test('every rule that a test quotes exists', () => {
  const ids = new Set(ruleIds())
  const families = new Set([...ids].map((id) => id.slice(0, 2)))
  const strangers = [...quotedIds()].filter((id) => families.has(id.slice(0, 2)) && !ids.has(id))
  expect(strangers).toEqual([])
})

function groupByFamily(ids: readonly string[]): Map<string, string[]> {
  const families = new Map<string, string[]>()
  for (const id of ids) families.set(id.slice(0, 2), [...(families.get(id.slice(0, 2)) ?? []), id])
  return families
}
