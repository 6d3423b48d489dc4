import { Command, CommanderError, Option } from 'commander'
import { CrowdError } from '../core/errors.ts'
import type { WorkerFlags } from './config.ts'

export type CommandLine =
  | { readonly kind: 'run'; readonly flags: WorkerFlags; readonly link: string | undefined }
  /** Help or version was printed. */
  | { readonly kind: 'done' }

const FLAGS: readonly (readonly [flags: string, text: string, variable: string])[] = [
  ['--join <link>', 'the same, as a flag', 'JOIN'],
  ['--name <name>', 'how others see this device (default: its host name)', 'NAME'],
  [
    '--memory <size>',
    'what to lend for weights and caches, e.g. 2GB or 512MB; on a GPU, of its memory (default: half of this machine’s)',
    'MEMORY',
  ],
  ['--threads <n>', 'CPU threads (default: all cores)', 'THREADS'],
  [
    '--provider <name>',
    'auto (CUDA, then WebGPU, then CPU: the first that passes a test), cuda, webgpu or cpu (default: auto)',
    'PROVIDER',
  ],
  [
    '--require-gpu',
    'fail where no GPU passes the self-test (operators that its provider lacks run on the CPU)',
    'REQUIRE_GPU',
  ],
  ['--data <dir>', 'where pieces of models are kept (default: ~/.crowdinfer)', 'DATA'],
  [
    '--once',
    'leave for good when the host goes away instead of waiting for it, and fail where it cannot be reached',
    'ONCE',
  ],
  ['--json', 'print each event as one line of JSON', 'JSON'],
]

const EXPLANATION = `
Ctrl-C takes on nothing new, hands running answers over or lets them end for up to 10 seconds, and leaves; a second one leaves at once.
Pieces that were fetched stay in the data folder.`

/**
 * Reads the arguments (without node and script).
 * @throws CrowdError bad-option for an unknown flag
 */
export function readCommandLine(
  args: readonly string[],
  output: { readonly version: string; write(text: string): void },
): CommandLine {
  const command = new Command('crowd-worker')
    .description('Lends this machine to a ring of devices that run a language model together.')
    .argument('[link]', 'the join link that the host prints')
    .version(output.version, '--version', 'print the version')
    .helpOption('--help', 'print this help')
    .allowExcessArguments(false)
    .exitOverride()
    .configureOutput({ writeOut: (text) => output.write(text), writeErr: () => undefined })
    .addHelpText('after', EXPLANATION)
  for (const [flags, text, variable] of FLAGS)
    command.addOption(new Option(flags, `${text} [CROWDINFER_${variable}]`))
  try {
    command.parse([...args], { from: 'user' })
  } catch (thrown) {
    if (!(thrown instanceof CommanderError)) throw thrown
    if (thrown.exitCode === 0) return { kind: 'done' }
    const message = thrown.message.replace(/^error: /, '').replaceAll('\n', ' ')
    throw new CrowdError('bad-option', message, { cause: thrown })
  }
  return { kind: 'run', flags: command.opts<WorkerFlags>(), link: command.args[0] }
}
