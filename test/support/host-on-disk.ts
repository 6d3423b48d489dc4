import { createHash } from 'node:crypto'
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { PieceHash } from '../../sdk/core/ids.ts'
import type { Manifest, Piece } from '../../sdk/core/model/manifest.ts'
import { parseConfig, type Flags } from '../../signaling/config.ts'
import type { HostedModel } from '../../signaling/hosted-model.ts'
import { createHost, type Host, type HostDeps, type StartedHost } from '../../signaling/server.ts'
import { modelOf } from './host-fixtures.ts'
import { createLetterTokenizer } from './letter-tokenizer.ts'

export type TestHost = {
  readonly host: Host
  readonly started: StartedHost
  /** `http://127.0.0.1:port` */
  readonly origin: string
  readonly piece: { readonly hash: PieceHash; readonly bytes: Uint8Array }
  readonly dataDir: string
  /** What the host told whoever runs it. */
  readonly logged: readonly string[]
  close(): Promise<void>
}

const PIECE_BYTES = 5_000

/** A host on a free loopback port with a model of six layers whose pieces really lie on the disk. */
export async function startTestHost(
  flags: Flags = {},
  files: Readonly<Record<string, unknown>> = {},
): Promise<TestHost> {
  const folder = await mkdtemp(join(tmpdir(), 'crowdinfer-host-'))
  const { deps, piece } = await testDeps(folder, files)
  const logged: string[] = []
  const dataDir = join(folder, 'data')
  const config = parseConfig({ port: '0', host: '127.0.0.1', data: dataDir, stages: '2', ...flags })
  const host = createHost(config, { ...deps, log: (line) => logged.push(line) })
  const started = await host.start()
  const scheme = started.urls.secure ? 'https' : 'http'
  return {
    host,
    started,
    origin: `${scheme}://127.0.0.1:${started.port}`,
    piece,
    dataDir,
    logged,
    async close() {
      await host.close()
      await rm(folder, { recursive: true, force: true })
    },
  }
}

/** @param files of the model, by name, as JSON */
export async function testDeps(
  folder: string,
  files: Readonly<Record<string, unknown>> = {},
): Promise<{
  readonly deps: HostDeps
  readonly piece: { readonly hash: PieceHash; readonly bytes: Uint8Array }
}> {
  const directory = join(folder, 'model')
  const siteDir = join(folder, 'site')
  await mkdir(join(directory, 'pieces'), { recursive: true })
  await mkdir(join(siteDir, 'assets'), { recursive: true })
  const bytes = Uint8Array.from({ length: PIECE_BYTES }, (_, index) => index & 255)
  const base = modelOf()
  const store = async (content: Uint8Array): Promise<Piece> => {
    const sha256 = createHash('sha256').update(content).digest('hex') as PieceHash
    await writeFile(join(directory, 'pieces', sha256), content)
    return { sha256, bytes: content.length }
  }
  const stored: Record<string, Piece> = {}
  for (const [name, json] of Object.entries(files))
    stored[name] = await store(new TextEncoder().encode(JSON.stringify(json)))
  const { sha256: hash } = await store(bytes)
  const manifest: Manifest = {
    ...base,
    files: stored,
    blocks: base.blocks.map((block) => ({
      ...block,
      data: [{ sha256: hash, bytes: PIECE_BYTES }],
    })),
  }
  await writeFile(join(directory, 'manifest.json'), JSON.stringify(manifest))
  for (const page of ['index', 'join', 'dashboard'])
    await writeFile(join(siteDir, `${page}.html`), `<!doctype html><title>${page}</title>`)
  await writeFile(join(siteDir, 'assets', 'app-1234.js'), 'export {}')
  await writeFile(join(siteDir, 'assets', 'ort-1234.wasm'), Uint8Array.of(0, 97, 115, 109))
  const hosted: HostedModel = { name: manifest.id, isBuiltin: true, manifest, directory }
  return {
    deps: {
      siteDir,
      prepareModel: () => Promise.resolve(hosted),
      openLibrary: () => ({
        list: () =>
          Promise.resolve([{ name: hosted.name, isBuiltin: true, size: null, problem: '' }]),
        open: () => Promise.resolve(hosted),
      }),
      // Letters are tokens; the end token of this model has none.
      openTokenizer: () => Promise.resolve(createLetterTokenizer()),
      addresses: ['192.168.1.20'],
      log: (line) => void process.stderr.write(`${line}\n`),
    },
    piece: { hash, bytes },
  }
}
