import { readdirSync, readFileSync } from 'node:fs'
import { dirname, join, relative, resolve, sep } from 'node:path'
import { expect, test } from 'vitest'

const root = resolve(import.meta.dirname, '../..')

/** A row of the table in ARCHITECTURE.md: who may import whom. Paths begin with sdk/, signaling or web. */
type Row = {
  /** `sdk/*` = the files that lie in sdk itself. */
  readonly folder: string
  readonly may: readonly string[]
  /** May be named in `import type` only. */
  readonly types: readonly string[]
  readonly packages: 'any' | readonly string[]
}

const document = readFileSync(join(root, 'ARCHITECTURE.md'), 'utf8')
const TABLE = readTable()

function readTable(): Row[] {
  const ports = [...document.matchAll(/^\| `\w+`[^|]*\(`(sdk\/[\w/.-]+)`\) \|/gm)].map(
    (match) => match[1] ?? '',
  )
  expect(ports.length).toBeGreaterThan(3)
  return [...document.matchAll(/^\| `([\w/*-]+)` \|.*\|.*\|.*\|.*\|$/gm)].map(
    ([line, folder = '']) => {
      const [may = '', types = '', packages = ''] = line.split('|').slice(3, 6)
      return {
        folder,
        may: quoted(may).map(pathOf),
        types: [...quoted(types).map(pathOf), ...(types.includes('ports') ? ports : [])],
        packages: packages.trim() === 'any' ? 'any' : quoted(packages),
      }
    },
  )
}

function quoted(cell: string): string[] {
  return [...cell.matchAll(/`([^`]+)`/g)].map((match) => match[1] ?? '')
}

/** `core` stands for sdk/core. */
function pathOf(name: string): string {
  return /^(sdk|signaling)\b/.test(name) ? name : `sdk/${name}`
}

const sources = ['sdk', 'signaling', 'web'].flatMap((folder) => walk(join(root, folder)))

function walk(folder: string): string[] {
  return readdirSync(folder, { withFileTypes: true }).flatMap((entry) => {
    const path = join(folder, entry.name)
    if (entry.isDirectory()) return walk(path)
    return /\.(ts|svelte)$/.test(entry.name) && !/\.test\.ts$|\.d\.ts$/.test(entry.name)
      ? [path]
      : []
  })
}

type Import = { readonly specifier: string; readonly typeOnly: boolean }

function importsOf(path: string): Import[] {
  const text = readFileSync(path, 'utf8')
  return [
    ...text.matchAll(
      /(?:^|\n)\s*(?:import|export)\s([^'"`;]*?)from\s*'([^']+)'|import\(\s*'([^']+)'|(?:^|\n)import '([^']+)'/g,
    ),
  ].map(([, names = '', from, dynamic, bare]) => ({
    specifier: from ?? dynamic ?? bare ?? '',
    typeOnly: names.startsWith('type '),
  }))
}

function ruleFor(file: string): Row | undefined {
  return TABLE.find(({ folder }) =>
    folder.endsWith('/*') ? dirname(file) === folder.slice(0, -2) : file.startsWith(`${folder}/`),
  )
}

const isUnder = (target: string, paths: readonly string[]): boolean =>
  paths.some((path) => target === path || target.startsWith(`${path}/`))

function packageObjection(rule: Row, file: string, name: string): string | null {
  if (name.startsWith('node:')) {
    const allowed = rule.folder.startsWith('signaling') || /\.node\.ts$/.test(file)
    return allowed ? null : 'node: only in *.node.ts and signaling/'
  }
  const allowed = rule.packages === 'any' || isUnder(name, rule.packages)
  return allowed ? null : `package ${name} is not allowed in ${rule.folder}`
}

/** Why a file may not import something, or null. */
function objection(file: string, { specifier, typeOnly }: Import): string | null {
  const rule = ruleFor(file)
  if (rule === undefined) return 'no row for this folder'
  if (!specifier.startsWith('.')) return packageObjection(rule, file, specifier)
  const target = relative(root, resolve(root, dirname(file), specifier))
    .split(sep)
    .join('/')
  const own = rule.folder.endsWith('/*') ? 'sdk' : rule.folder
  if (isUnder(target, [own, ...rule.may])) return null
  if (typeOnly && isUnder(target, rule.types)) return null
  return `${rule.folder} may not import ${target}${isUnder(target, rule.types) ? ' but its types' : ''}`
}

test('imports go one way: core, protocol, adapters, roles, composition roots', () => {
  const objections = sources.flatMap((path) => {
    const file = relative(root, path).split(sep).join('/')
    return importsOf(path).flatMap((one) => {
      const why = objection(file, one)
      return why === null ? [] : [`${file}: ${why}`]
    })
  })
  expect(objections).toEqual([])
})

/** A way along the imports from a file back to itself, or null. */
function circleOf(start: string, targets: (file: string) => readonly string[]): string[] | null {
  const cameFrom = new Map<string, string>()
  const open = [start]
  for (let file = open.pop(); file !== undefined; file = open.pop()) {
    for (const target of targets(file)) {
      if (target === start) {
        const way = [start]
        for (let at = file; at !== start; at = cameFrom.get(at) ?? start) way.push(at)
        return [...way, start].reverse()
      }
      if (cameFrom.has(target)) continue
      cameFrom.set(target, file)
      open.push(target)
    }
  }
  return null
}

test('no file imports itself by way of others, types included', () => {
  const all = new Map(
    sources.map((path) => [
      path,
      importsOf(path)
        .filter(({ specifier }) => specifier.startsWith('.'))
        .map(({ specifier }) => resolve(dirname(path), specifier)),
    ]),
  )
  const circles = sources.flatMap((path) => {
    const circle = circleOf(path, (file) => all.get(file) ?? [])
    return circle === null ? [] : [circle.map((file) => relative(root, file)).join(' > ')]
  })
  expect(circles).toEqual([])
  const ring: Readonly<Record<string, string[]>> = { a: ['b'], b: ['c'], c: ['d', 'a'] }
  expect(circleOf('a', (file) => ring[file] ?? [])).toEqual(['a', 'b', 'c', 'a'])
  expect(circleOf('d', (file) => ring[file] ?? [])).toBeNull()
})

test('the table notices a forbidden import', () => {
  const why = (file: string, specifier: string, typeOnly = false) =>
    objection(file, { specifier, typeOnly })
  expect(why('sdk/core/x.ts', 'valibot')).not.toBeNull()
  expect(why('sdk/core/x.ts', '../protocol/parse.ts')).not.toBeNull()
  expect(why('sdk/runtime/x.ts', '../protocol/parse.ts')).not.toBeNull()
  expect(why('sdk/storage/x.ts', '../import/import-model.node.ts')).not.toBeNull()
  expect(why('sdk/worker/x.ts', '../runtime/ort-queue.ts', true)).not.toBeNull()
  expect(why('sdk/worker/x.ts', '../runtime/stage-runner.ts')).not.toBeNull()
  expect(why('sdk/worker/x.ts', '../runtime/stage-runner.ts', true)).toBeNull()
  expect(why('sdk/index.node.ts', './runtime/ort.node.ts')).toBeNull()
  expect(why('sdk/stranger/x.ts', '../core/ids.ts')).toBe('no row for this folder')
  expect(why('web/chat/x.ts', '../../signaling/server.ts')).not.toBeNull()
})

test('browser files stay out of Node and the other way round', () => {
  const wrong = sources.flatMap((path) => {
    const file = relative(root, path).split(sep).join('/')
    const clash = /\.browser\.ts$/.test(file)
      ? /\.node\.ts$/
      : /\.node\.ts$/.test(file) || file.startsWith('signaling/')
        ? /\.browser\.ts$/
        : null
    return clash === null
      ? []
      : importsOf(path)
          .filter(({ specifier }) => clash.test(specifier))
          .map(({ specifier }) => `${file} imports ${specifier}`)
  })
  expect(wrong).toEqual([])
})
