import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { PassThrough } from 'node:stream'
import { fileURLToPath } from 'node:url'
import { runCli } from '../../signaling/cli.ts'
import { addModelCommands } from '../../signaling/model-cli.ts'
import { createModelCommands } from '../../signaling/model-commands.ts'
import { runPrompt, type RunOptions } from '../../signaling/run-command.ts'
import { COMMIT } from './hub-kit.ts'
import {
  fakeFile,
  startHubServer,
  type FakeFile,
  type FakeRepo,
  type HubServer,
} from './hub-server.ts'

export type Run = { readonly text: string; readonly error: string }

export type Listed = { name: string; dtype: string | null; problem: string | null; kind: string }

/** `crowdinfer model …` with a data folder and a hub of its own. */
export type ModelCli = {
  readonly hub: HubServer
  readonly folder: string
  readonly data: string
  /** One command line; what it printed, and the message it failed with. */
  crowdinfer(...args: readonly string[]): Promise<Run>
  runWith(environment: Record<string, string>, ...args: readonly string[]): Promise<Run>
  listed(): Promise<Listed[]>
  /** What `crowdinfer run` answers. */
  answer(model: string): Promise<string>
  close(): Promise<void>
}

const OPTIONS: RunOptions = {
  stages: 2,
  greedy: true,
  seed: 0,
  temperature: 0.7,
  maxTokens: 16,
  raw: false,
  json: false,
  data: '',
}

export async function openModelCli(repos: Readonly<Record<string, FakeRepo>>): Promise<ModelCli> {
  const hub = await startHubServer(repos)
  const folder = await mkdtemp(join(tmpdir(), 'crowdinfer-models-'))
  const data = join(folder, 'data')

  async function runWith(
    environment: Record<string, string>,
    ...args: readonly string[]
  ): Promise<Run> {
    const output = new PassThrough()
    let text = ''
    output.setEncoding('utf8').on('data', (part: string) => (text += part))
    const input = new PassThrough()
    const variables = { HF_ENDPOINT: hub.url.href, CROWDINFER_DATA: data, ...environment }
    const commands = createModelCommands({ environment: variables, output, input })
    const add = (program: Parameters<typeof addModelCommands>[0]): void =>
      addModelCommands(program, () => Promise.resolve(commands))
    const actions = { start: () => Promise.reject(new Error('start')), commands: [add] }
    try {
      await runCli(['model', ...args], actions, { version: '0', environment: variables })
      return { text, error: '' }
    } catch (thrown) {
      return { text, error: thrown instanceof Error ? thrown.message : String(thrown) }
    }
  }

  const crowdinfer = (...args: readonly string[]): Promise<Run> => runWith({}, ...args)
  return {
    hub,
    folder,
    data,
    crowdinfer,
    runWith,
    async listed() {
      const { text } = await crowdinfer('list', '--json')
      // Cast: our own output.
      return JSON.parse(text) as Listed[]
    },
    async answer(model) {
      const options = { ...OPTIONS, data }
      return (await runPrompt(model, 'What is a ring?', options, () => undefined)).text
    },
    async close() {
      await hub.close()
      await rm(folder, { recursive: true, force: true })
    },
  }
}

/** Where the exporters' files lie, one directory each. */
export const EXPORTS = fileURLToPath(new URL('../fixtures/reference/onnx/', import.meta.url))

/** One model in the layout of transformers.js, in two dtypes that can be read and one that can't. */
export async function exportedModel(): Promise<FakeRepo> {
  const read = async (path: string, isLarge = false): Promise<FakeFile> =>
    fakeFile(await readFile(join(EXPORTS, path)), isLarge)
  const graph = 'onnx/model_q4f16.onnx'
  const files: Record<string, FakeFile> = {
    'config.json': await read('genai-llama-fp32/config.json'),
    'tokenizer.json': await read('genai-llama-fp32/tokenizer.json'),
    'onnx/model.onnx': await read('genai-llama-fp32/onnx/model.onnx', true),
    'onnx/model.onnx.data': await read('genai-llama-fp32/onnx/model.onnx.data', true),
    'onnx/model_quantized.onnx': fakeFile(Buffer.from('no graph at all'), true),
    [graph]: await read(`optimum-gptneox-q4f16/${graph}`, true),
  }
  return { commit: COMMIT, files }
}
