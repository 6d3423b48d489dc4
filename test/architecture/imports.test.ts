import { readdirSync, readFileSync } from 'node:fs'
import { dirname, join, relative, resolve, sep } from 'node:path'
import { expect, test } from 'vitest'

const root = resolve(import.meta.dirname, '../..')

/**
 * Who may import whom, by folder; the first row whose prefix fits a file rules it. `packages: true` = any,
 * otherwise the listed ones. Files of one folder may always import each other.
 */
const TABLE: { folder: string; may: string[]; packages: true | string[] }[] = [
  { folder: 'sdk/core', may: [], packages: [] },
  { folder: 'sdk/protocol', may: ['sdk/core'], packages: ['valibot'] },
  {
    folder: 'sdk/runtime',
    may: ['sdk/core', 'sdk/protocol'],
    packages: ['onnxruntime-web', 'onnxruntime-node', 'onnxruntime-common'],
  },
  {
    folder: 'sdk/storage',
    may: ['sdk/core', 'sdk/protocol'],
    packages: ['idb-keyval', '@noble/hashes'],
  },
  {
    folder: 'sdk/net',
    may: ['sdk/core', 'sdk/protocol'],
    packages: ['simple-peer', 'node-datachannel', 'socket.io-client'],
  },
  { folder: 'sdk/import', may: ['sdk/core', 'sdk/storage'], packages: [] },
  {
    folder: 'sdk/worker',
    may: [
      'sdk/core',
      'sdk/protocol',
      'sdk/runtime/stage-runner',
      'sdk/storage/shard-store',
      'sdk/net/channel',
      'sdk/net/signaling',
    ],
    packages: [],
  },
  {
    folder: 'sdk/client',
    may: ['sdk/core', 'sdk/protocol', 'sdk/net/signaling'],
    packages: ['@huggingface/tokenizers', '@huggingface/jinja'],
  },
  { folder: 'sdk/local', may: ['sdk/core', 'sdk/runtime/stage-runner'], packages: [] },
  {
    folder: 'sdk/crowd-worker',
    may: [
      'sdk/core',
      'sdk/import/data-directory.node',
      'sdk/import/package-root.node',
      'sdk/net/signaling',
      'sdk/node-worker.node',
      'sdk/worker/worker-snapshot',
    ],
    packages: ['commander'],
  },
  { folder: 'sdk', may: ['sdk'], packages: [] },
  {
    folder: 'signaling',
    may: ['sdk/core', 'sdk/protocol', 'sdk/import', 'sdk/index.node'],
    packages: true,
  },
  {
    folder: 'web',
    may: [
      'sdk/core',
      'sdk/protocol',
      'sdk/index.browser',
      'sdk/worker/worker-snapshot',
      'sdk/client/client-types',
      'sdk/client/tokenizer',
      'sdk/net/signaling',
    ],
    packages: true,
  },
]

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

function importsOf(path: string): string[] {
  const text = readFileSync(path, 'utf8')
  return [
    ...text.matchAll(
      /(?:^|\n)\s*(?:import|export)\s[^'"`;]*?from\s*'([^']+)'|import\(\s*'([^']+)'|(?:^|\n)import '([^']+)'/g,
    ),
  ].map((match) => match[1] ?? match[2] ?? match[3] ?? '')
}

/** Why a file may not import something, or null. */
function objection(file: string, specifier: string): string | null {
  const rule = TABLE.find(({ folder }) => file.startsWith(`${folder}/`))
  if (rule === undefined) return 'no rule for this folder'
  if (specifier.startsWith('node:')) {
    return rule.folder === 'signaling' || /\.node\.ts$/.test(file)
      ? null
      : 'node: only in *.node.ts and signaling/'
  }
  if (!specifier.startsWith('.')) {
    const allowed =
      rule.packages === true ||
      rule.packages.some((name) => specifier === name || specifier.startsWith(`${name}/`))
    return allowed ? null : `package ${specifier} is not allowed in ${rule.folder}`
  }
  const target = relative(root, resolve(root, dirname(file), specifier))
    .split(sep)
    .join('/')
  const allowed = [rule.folder, ...rule.may].some(
    (prefix) =>
      target === prefix || target.startsWith(`${prefix}/`) || target.startsWith(`${prefix}.`),
  )
  return allowed ? null : `${rule.folder} may not import ${target}`
}

test('imports go one way: core, protocol, adapters, roles, composition roots', () => {
  const objections = sources.flatMap((path) => {
    const file = relative(root, path).split(sep).join('/')
    return importsOf(path).flatMap((specifier) => {
      const why = objection(file, specifier)
      return why === null ? [] : [`${file}: ${why}`]
    })
  })
  expect(objections).toEqual([])
})

test('the table notices a forbidden import', () => {
  expect(objection('sdk/core/x.ts', 'valibot')).not.toBeNull()
  expect(objection('sdk/core/x.ts', '../protocol/parse.ts')).not.toBeNull()
  expect(objection('sdk/worker/x.ts', '../runtime/ort-queue.ts')).not.toBeNull()
  expect(objection('sdk/worker/x.ts', '../runtime/stage-runner.ts')).toBeNull()
  expect(objection('web/chat/x.ts', '../../signaling/server.ts')).not.toBeNull()
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
          .filter((specifier) => clash.test(specifier))
          .map((specifier) => `${file} imports ${specifier}`)
  })
  expect(wrong).toEqual([])
})
