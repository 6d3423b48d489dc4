import { cp, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createTokenizer } from '../../sdk/client/tokenizer.hf.ts'
import { CrowdError } from '../../sdk/core/errors.ts'
import { parseOnnxConfig } from '../../sdk/core/model/onnx/onnx-config.ts'
import { planOnnx } from '../../sdk/core/model/onnx/plan-onnx.ts'
import { importModel } from '../../sdk/import/import-model.node.ts'
import { openOnnx } from '../../sdk/import/onnx-source.node.ts'
import { mutateBytes, mutateJson, seededDraw, type Draw } from './mutate.ts'

/** Of each kind; the kinds together are more than 500. */
const CASES = 150
/** Of processor time, since test machines are shared. */
const LIMIT_MS = 1_000
const MEMORY_MAX = 1024 ** 3
const TEST_MS = 240_000

const path = (relative: string): string => fileURLToPath(new URL(relative, import.meta.url))
const CHECKPOINT = path('../fixtures/reference/llama')
const GGUF = path('../fixtures/reference/gguf/llama-q4_0')
const ONNX = path('../fixtures/reference/onnx')

let root = ''
beforeAll(async () => {
  root = await mkdtemp(join(tmpdir(), 'crowdinfer-fuzz-'))
})
afterAll(() => rm(root, { recursive: true, force: true }))

type Outcome = { readonly refused: boolean; readonly fault: string | null }

/** What became of one malformed input: taken, refused by name, or a fault of ours. */
async function outcomeOf(name: string, work: () => Promise<unknown>): Promise<Outcome> {
  const before = process.cpuUsage()
  const thrown = await work().then(
    () => null,
    (error: unknown) => error,
  )
  const { user, system } = process.cpuUsage(before)
  const ms = (user + system) / 1_000
  const isNamed = thrown === null || (thrown instanceof CrowdError && thrown.code !== 'internal')
  const slow = ms > LIMIT_MS ? `${name} took ${Math.round(ms)} ms` : null
  const text = thrown instanceof Error ? (thrown.stack ?? thrown.message) : 'no error object'
  return { refused: thrown !== null, fault: isNamed ? slow : `${name}: ${text}` }
}

async function runCases(
  kind: string,
  work: (draw: Draw, index: number) => Promise<unknown>,
): Promise<{ refused: number; faults: string[] }> {
  const before = process.memoryUsage().rss
  const outcomes: Outcome[] = []
  for (let index = 0; index < CASES; index++) {
    outcomes.push(await outcomeOf(`${kind} ${index}`, () => work(seededDraw(index), index)))
  }
  // The most at any moment, in the middle of a case too.
  const grown = process.resourceUsage().maxRSS * 1_024 - before
  const faults = outcomes.flatMap(({ fault }) => fault ?? [])
  if (grown > MEMORY_MAX) faults.push(`memory grew by ${grown} bytes`)
  return { refused: outcomes.filter(({ refused }) => refused).length, faults }
}

describe('malformed files', () => {
  it(
    'safetensors: refused by name, quickly, in little memory',
    async () => {
      const directory = join(root, 'safetensors')
      await cp(CHECKPOINT, directory, { recursive: true })
      const bytes = new Uint8Array(await readFile(join(CHECKPOINT, 'model.safetensors')))
      const { refused, faults } = await runCases('safetensors', async (draw) => {
        await writeFile(join(directory, 'model.safetensors'), mutateBytes(bytes, draw, 2_000))
        await importModel(directory, join(root, 'store'))
      })
      expect(faults).toEqual([])
      expect(refused).toBeGreaterThan(CASES / 2)
    },
    TEST_MS,
  )

  it(
    'config.json: refused by name, quickly, in little memory',
    async () => {
      const directory = join(root, 'config')
      await cp(CHECKPOINT, directory, { recursive: true })
      const config: unknown = JSON.parse(await readFile(join(CHECKPOINT, 'config.json'), 'utf8'))
      const { refused, faults } = await runCases('config.json', async (draw) => {
        const changed = mutateJson(config, draw)
        await writeFile(join(directory, 'config.json'), JSON.stringify(changed))
        await importModel(directory, join(root, 'store'))
      })
      expect(faults).toEqual([])
      expect(refused).toBeGreaterThan(CASES / 3)
    },
    TEST_MS,
  )

  it(
    'GGUF: refused by name, quickly, in little memory',
    async () => {
      const bytes = new Uint8Array(await readFile(join(GGUF, 'model.gguf')))
      const { refused, faults } = await runCases('GGUF', async (draw, index) => {
        const file = join(root, `${index}.gguf`)
        await writeFile(file, mutateBytes(bytes, draw, 6_000))
        await importModel(file, join(root, 'store')).finally(() => rm(file))
      })
      expect(faults).toEqual([])
      expect(refused).toBeGreaterThan(CASES / 3)
    },
    TEST_MS,
  )

  it.each([
    { name: 'genai-llama-q4', file: 'model_q4.onnx', head: 26_000 },
    { name: 'optimum-llama-q4', file: 'model_q4.onnx', head: 120_000 },
  ])(
    'ONNX ($name): refused by name, quickly, in little memory',
    async ({ name, file, head }) => {
      const directory = join(root, name)
      await cp(join(ONNX, name, 'onnx'), directory, { recursive: true })
      const target = join(directory, file)
      const bytes = new Uint8Array(await readFile(target))
      const config: unknown = JSON.parse(await readFile(join(ONNX, name, 'config.json'), 'utf8'))
      const { refused, faults } = await runCases('ONNX', async (draw) => {
        await writeFile(target, mutateBytes(bytes, draw, Math.min(head, bytes.length)))
        const source = await openOnnx(target)
        try {
          planOnnx(source.graph, parseOnnxConfig(config), 64)
        } finally {
          await source.close()
        }
      })
      expect(faults).toEqual([])
      expect(refused).toBeGreaterThan(CASES / 2)
    },
    TEST_MS,
  )

  it(
    'tokenizer.json: refused by name, quickly, in little memory',
    async () => {
      const files = ['crowdtalk-0.3m', 'crowdtalk-2.6m'].map((model) =>
        path(`../../public/models/${model}/tokenizer.json`),
      )
      const [small = '{}', large = '{}'] = await Promise.all(
        files.map((file) => readFile(file, 'utf8')),
      )
      const bases: unknown[] = [JSON.parse(small), JSON.parse(large)]
      const { refused, faults } = await runCases('tokenizer.json', (draw, index) =>
        Promise.resolve().then(() => {
          const tokenizerJson = mutateJson(bases[index % 2], draw)
          createTokenizer({ tokenizerJson }).encode('Once upon a time, 12 of them.')
        }),
      )
      expect(faults).toEqual([])
      expect(refused).toBeGreaterThan(CASES / 20)
    },
    TEST_MS,
  )
})
