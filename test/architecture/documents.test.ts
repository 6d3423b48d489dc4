import { existsSync, readFileSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { expect, test } from 'vitest'
import { ERROR_CODES } from '../../sdk/core/errors.ts'
import { fieldsMarkdown } from '../../signaling/api/fields.ts'

const root = resolve(import.meta.dirname, '../..')
const read = (name: string): string => readFileSync(join(root, name), 'utf8')

test('the README lists the error codes, each with what to do, and no other', () => {
  const [, block = ''] = /<!-- errors -->\n([^]*?)<!-- \/errors -->/.exec(read('README.md')) ?? []
  const rows = [...block.matchAll(/^\| (`.*) \|$/gm)].map((match) => match[1])
  expect(rows).toEqual(Object.entries(ERROR_CODES).map(([code, hint]) => `\`${code}\` | ${hint}`))
})

test('API.md has the table of request fields', () => {
  expect(read('signaling/api/API.md')).toContain(
    `<!-- fields -->\n${fieldsMarkdown()}\n<!-- /fields -->`,
  )
})

test.each([
  'README.md',
  'ARCHITECTURE.md',
  'CONTRIBUTING.md',
  'sdk/core/wire/PROTOCOL.md',
  'signaling/api/API.md',
  'tools/builtin-model/README.md',
])('links in %s lead somewhere', (name) => {
  const links = [...read(name).matchAll(/\]\(([^)#]+)(?:#[^)]*)?\)/g)]
    .map((match) => match[1] ?? '')
    .filter((link) => !/^https?:/.test(link))
  expect(links.filter((link) => !existsSync(join(root, dirname(name), link)))).toEqual([])
})

test('every npm script that the documents name exists', () => {
  const { scripts } = JSON.parse(read('package.json')) as { scripts: Record<string, string> }
  const named = ['README.md', 'CONTRIBUTING.md'].flatMap((name) =>
    [...read(name).matchAll(/npm run ([\w:]+)/g)].map((match) => match[1] ?? ''),
  )
  expect(named.filter((script) => !(script in scripts))).toEqual([])
})
