import { InvalidArgumentError, Option, type Command } from 'commander'
import { CrowdError } from '../sdk/core/errors.ts'
import { ASKED_DTYPES } from '../sdk/core/model/onnx/export-files.ts'
import { isModelName } from '../sdk/import/known-model.ts'
import type {
  AddFlags,
  InspectFlags,
  ListFlags,
  ModelCommands,
  RecommendFlags,
  RemoveFlags,
} from './model-flags.ts'

const SOURCES = `
SOURCE is one of
  org/name             a model of the hub; org/name@revision pins a branch, tag or commit
  org/name:Q4_K_M      one GGUF file of a repository that holds several, by quantisation or path
  a directory          with config.json, tokenizer.json and safetensors or onnx/model*.onnx
  a file               .gguf, or .onnx with its config.json beside it or one folder up
--dtype q4, q8, f16 or f32 says how weights of safetensors or GGUF files are kept. Of ONNX exports it chooses the file:
fp32 is onnx/model.onnx, q8 is onnx/model_quantized.onnx, any other onnx/model_DTYPE.onnx.
What is downloaded is deleted once its blocks are made. A killed download goes on when the same command is run again.`

/** Adds `crowdinfer model add|list|inspect|remove|verify|recommend`. */
export function addModelCommands(
  program: Command,
  load: () => Promise<ModelCommands> = loadCommands,
): void {
  const model = quiet(program.command('model').description('models that this machine can serve'))
  model.helpCommand(false)
  model.allowExcessArguments().action(() => {
    throw new CrowdError(
      'bad-option',
      'model: say add, list, inspect, remove, verify, recommend or use',
    )
  })
  withHub(model.command('add <source>'))
    .description('download a model if need be, cut it into blocks, and give it a name')
    .addOption(
      dtypeOption(
        'how weights are kept, or which file of an ONNX export (default: what loses least)',
      ),
    )
    .option('--name <name>', 'what start and run know it by (default: its own name)', modelName)
    .option(
      '--context <n>',
      'tokens, prompt and answer together (default: its own, at most 8192)',
      whole,
    )
    .option('--revision <r>', 'the same as @revision')
    .option('--keep-source', 'keep what was downloaded')
    .option('--yes', 'download without asking')
    .addHelpText('after', SOURCES)
    .action(async (source: string, flags: AddFlags) => (await load()).add(source, flags))
  withData(model.command('list'))
    .description('list the built-in models, those that were added, and unfinished downloads')
    .option('--json', 'print JSON')
    .action(async (flags: ListFlags) => (await load()).list(flags))
  withHub(model.command('inspect <model>'))
    .description('show what a model is and how many devices it needs: a name, a path or org/name')
    .addOption(dtypeOption('of a model that is not cut yet (default: f16, or f32 as the source)'))
    .option('--context <n>', 'tokens to plan for', whole)
    .option('--json', 'print JSON')
    .action(async (name: string, flags: InspectFlags) => (await load()).inspect(name, flags))
  withData(model.command('remove <name>'))
    .description('delete an added model, or the unfinished download of org/name, from this disk')
    .option('--yes', 'without asking')
    .action(async (name: string, flags: RemoveFlags) => (await load()).remove(name, flags))
  withData(model.command('verify <name>'))
    .description(
      'read every piece of a model again and compare its hash; exit code 1 if one is damaged',
    )
    .option('--json', 'print JSON')
    .action(async (name: string, flags: ListFlags) => (await load()).verify(name, flags))
  quiet(model.command('recommend'))
    .description('well-known models that given devices can hold together')
    .option(
      '--devices <list>',
      'what each lends, e.g. 2GB,4GB,1GB:wasm (wasm = a tab without WebGPU)',
    )
    .option('--swarm <url>', 'the devices that a running host has now')
    .option('--context <n>', 'tokens to plan for', whole, 4096)
    .option('--json', 'print JSON')
    .action(async (flags: RecommendFlags) => (await load()).recommend(flags))
}

async function loadCommands(): Promise<ModelCommands> {
  const { createModelCommands } = await import('./model-commands.ts')
  return createModelCommands({
    environment: process.env,
    output: process.stdout,
    input: process.stdin,
  })
}

function withHub(command: Command): Command {
  return withData(command)
    .option('--hub <url>', 'a mirror that answers as the hub does [HF_ENDPOINT]')
    .option(
      '--token-file <file>',
      'holds a token for gated models; it goes to the hub only [HF_TOKEN]',
    )
}

function withData(command: Command): Command {
  return quiet(command).option(
    '--data <dir>',
    'the --data of the host that the models are for (default: ~/.crowdinfer)',
  )
}

function quiet(command: Command): Command {
  return command
    .exitOverride()
    .configureOutput({ writeErr: () => undefined })
    .helpOption('--help', 'print this help')
    .allowExcessArguments(false)
}

function dtypeOption(text: string): Option {
  return new Option('--dtype <dtype>', text).choices(ASKED_DTYPES)
}

function whole(text: string): number {
  const number = Number(text)
  if (/^\d{1,8}$/.test(text) && number > 0) return number
  throw new InvalidArgumentError('must be a whole number from 1.')
}

function modelName(text: string): string {
  if (isModelName(text)) return text
  throw new InvalidArgumentError('may hold letters, digits, ".", "-" and "_", at most 80.')
}
