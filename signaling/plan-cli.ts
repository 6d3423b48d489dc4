import { InvalidArgumentError, Option, type Command } from 'commander'
import { CrowdError } from '../sdk/core/errors.ts'
import type { WeightDtype } from '../sdk/core/model/manifest.ts'
import { dataDirectory } from '../sdk/import/data-directory.node.ts'
import { DEFAULT_PORT } from './config.ts'
import { planLines } from './plan-lines.ts'

type PlanFlags = {
  readonly devices?: string
  readonly host?: string
  readonly stages: number | 'auto'
  readonly dtype?: WeightDtype
  readonly context?: number
  readonly data?: string
  readonly json: boolean
}

const DTYPES: readonly WeightDtype[] = ['q4', 'q8', 'f16', 'f32']

/** Adds `crowdinfer plan`. What it needs is loaded only when it is called. `write` gets whole lines. */
export function addPlanCommand(
  program: Command,
  write: (line: string) => void = (line) => void process.stdout.write(`${line}\n`),
): void {
  program
    .command('plan [model]')
    .description(
      'say who would hold which layers and why: of a running host, or of a model and devices that are not there',
    )
    .exitOverride()
    .configureOutput({ writeErr: () => undefined })
    .helpOption('--help', 'print this help')
    .option(
      '--devices <list>',
      'what each lends, e.g. 4GB,2GB@wasm,8GB@webgpu:12ms (ms for a layer, else guessed)',
    )
    .option('--host <url>', `a running host (default: http://localhost:${DEFAULT_PORT})`)
    .option('--stages <n>', 'at least n stages, or "auto" as for start', stages, 'auto')
    .addOption(new Option('--dtype <dtype>', 'of a model that is not cut yet').choices(DTYPES))
    .option('--context <n>', 'tokens to plan for', whole)
    .option('--data <dir>', 'where models are kept')
    .option('--json', 'print JSON', false)
    .action(async (model: string | undefined, flags: PlanFlags) => {
      const { planHypothetical, planOfHost } = await import('./plan-command.ts')
      const plan =
        model === undefined && flags.devices === undefined
          ? await planOfHost(flags.host ?? `http://localhost:${portOf()}`, globalThis.fetch)
          : await planHypothetical({ ...bothOf(model, flags), dataDir: dataDirectory(flags.data) })
      if (flags.json) write(JSON.stringify(plan, null, 2))
      else for (const line of planLines(plan, process.stdout.columns ?? 120)) write(line)
    })
}

function bothOf(name: string | undefined, { devices, stages, dtype, context, host }: PlanFlags) {
  if (name === undefined || devices === undefined || host !== undefined) {
    const example = 'crowdinfer plan crowdtalk-2.6m --devices 4GB,2GB@wasm'
    throw new CrowdError(
      'bad-option',
      `plan: give a model and --devices (${example}), or --host alone for a running host`,
    )
  }
  return { name, devices, stages, dtype, contextLength: context }
}

function portOf(): string {
  return process.env['CROWDINFER_PORT'] ?? String(DEFAULT_PORT)
}

function whole(text: string): number {
  const number = Number(text)
  if (/^\d{1,8}$/.test(text) && number > 0) return number
  throw new InvalidArgumentError('must be a whole number from 1.')
}

function stages(text: string): number | 'auto' {
  return text === 'auto' ? 'auto' : whole(text)
}
