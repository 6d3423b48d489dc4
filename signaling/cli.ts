import { Command, CommanderError, Option } from 'commander'
import { CrowdError } from '../sdk/core/errors.ts'
import { DEFAULT_MODEL, DEFAULT_PORT, parseConfig, type Config, type Flags } from './config.ts'

export type CliActions = {
  /** Hosts until a signal ends it. */
  start(config: Config): Promise<void>
  /** Adds further commands, e.g. `run`. */
  readonly commands?: readonly ((program: Command) => void)[]
}

type CliInput = {
  readonly version: string
  readonly environment: Readonly<Record<string, string | undefined>>
  /** Where help and errors of the command line go; default: the process's own. */
  readonly write?: (text: string) => void
}

/**
 * Runs the command line `args` (without node and script).
 * @returns the exit code of help, version and command-line errors; 0 after the action
 * @throws CrowdError from the action, and bad-option for a wrong value or an unknown flag
 */
export async function runCli(
  args: readonly string[],
  actions: CliActions,
  input: CliInput,
): Promise<number> {
  const program = buildProgram(actions, input)
  try {
    await program.parseAsync([...args], { from: 'user' })
    return 0
  } catch (thrown) {
    if (!(thrown instanceof CommanderError)) throw thrown
    // Help and version were printed; everything else is a mistake in the command line.
    if (thrown.exitCode === 0) return 0
    throw new CrowdError(
      'bad-option',
      thrown.message
        .replace(/^error: /, '')
        .replace(' is invalid. ', ' is invalid: ')
        .replaceAll('\n', ' '),
      { cause: thrown },
    )
  }
}

function buildProgram(actions: CliActions, input: CliInput): Command {
  const program = new Command('crowdinfer')
  settle(program, input)
  program
    .description('Many devices, one model: hosts a ring of browser tabs that run a model together.')
    .version(input.version, '--version', 'print the version')
    .helpOption('--help', 'print this help')
    .helpCommand(false)
  const start = program
    .command('start', { isDefault: true })
    .description('start the host (default)')
  settle(start, input)
  addHostFlags(start)
  start.allowExcessArguments(false)
  start.action(async (flags: Flags) => {
    await actions.start(parseConfig(flags, input.environment))
  })
  for (const add of actions.commands ?? []) add(program)
  program.addHelpText('after', () => `\n${start.helpInformation()}`)
  return program
}

/** Errors are thrown instead of ending the process, and reach people in our own words. */
function settle(command: Command, input: CliInput): void {
  command.exitOverride()
  command.helpOption('--help', 'print this help')
  command.configureOutput({
    ...(input.write ? { writeOut: input.write } : {}),
    writeErr: () => undefined,
  })
}

const HOST_FLAGS: readonly (readonly [flags: string, text: string, variable: string])[] = [
  [
    '--model <name or path>',
    `a built-in or added model, a directory with config.json, safetensors and tokenizer.json, a .gguf or .onnx file, or org/name, which is added first (default: ${DEFAULT_MODEL})`,
    'MODEL',
  ],
  ['--port <n>', `port to listen on, 0 = any free one (default: ${DEFAULT_PORT})`, 'PORT'],
  ['--host <address>', 'address to listen on (default: 0.0.0.0, all of them)', 'HOST'],
  ['--https', 'serve https with an own certificate, made on first use and kept', 'HTTPS'],
  ['--cert <file>', 'serve https with this certificate (PEM), together with --key', 'CERT'],
  ['--key <file>', 'private key of --cert (PEM)', 'KEY'],
  [
    '--public',
    'open pool: anyone who reaches the host may join; otherwise only by its links',
    'PUBLIC',
  ],
  [
    '--data <dir>',
    'where models, the certificate, the pool’s secret and API keys are kept (default: ~/.crowdinfer)',
    'DATA',
  ],
  ['--open', 'open the chat page in the browser', 'OPEN'],
  [
    '--stages <n>',
    'cut the model into at least n stages, or "auto": 2 for built-in models, else 1',
    'STAGES',
  ],
  [
    '--ice <servers>',
    'STUN or TURN servers: turn:name:password@host:port, or the JSON list that WebRTC takes',
    'ICE',
  ],
]

function addHostFlags(command: Command): void {
  for (const [flags, text, variable] of HOST_FLAGS)
    command.addOption(new Option(flags, `${text} [CROWDINFER_${variable}]`))
}
