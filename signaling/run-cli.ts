import { InvalidArgumentError, type Command } from 'commander'
import { dataDirectory } from '../sdk/import/data-directory.node.ts'

type RunFlags = {
  readonly stages: number
  readonly greedy: boolean
  readonly seed: number
  readonly temperature: number
  readonly maxTokens: number
  readonly raw: boolean
  readonly json: boolean
  readonly data?: string
}

/** Adds `crowdinfer run MODEL PROMPT`. What it runs is loaded only when it is called: it brings a runtime. */
export function addRunCommand(program: Command): void {
  program
    .command('run <model> <prompt>')
    .description(
      'run a built-in or added model, or one at a path, on this machine, cut into stages in one process',
    )
    .exitOverride()
    .configureOutput({ writeErr: () => undefined })
    .helpOption('--help', 'print this help')
    .option('--stages <n>', 'stages to cut the model into', wholeFrom(1), 1)
    .option('--greedy', 'always the likeliest token', false)
    .option('--seed <n>', 'seed of the random numbers', wholeFrom(0), 0)
    .option('--temperature <t>', 'higher is more varied', temperature, 0.7)
    .option('--max-tokens <n>', 'longest answer', wholeFrom(1), 100)
    .option('--raw', 'the prompt as it is, with no chat template', false)
    .option('--json', 'print one JSON object', false)
    .option('--data <dir>', 'where models are kept')
    .action(async (model: string, prompt: string, flags: RunFlags) => {
      const { runPrompt } = await import('./run-command.ts')
      const data = dataDirectory(flags.data)
      const result = await runPrompt(model, prompt, { ...flags, data }, (text) => {
        if (!flags.json) process.stdout.write(text)
      })
      process.stdout.write(flags.json ? `${JSON.stringify(result)}\n` : '\n')
    })
}

function wholeFrom(least: number): (text: string) => number {
  return (text) => {
    const number = Number(text)
    if (/^\d+$/.test(text) && number >= least && number <= 0xffff_ffff) return number
    throw new InvalidArgumentError(`must be a whole number from ${least}.`)
  }
}

function temperature(text: string): number {
  const number = Number(text)
  if (text.trim() !== '' && number >= 0 && number <= 10) return number
  throw new InvalidArgumentError('must be a number from 0 to 10.')
}
