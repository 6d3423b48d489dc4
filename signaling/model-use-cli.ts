import { setTimeout as wait } from 'node:timers/promises'
import type { Command } from 'commander'
import { CrowdError } from '../sdk/core/errors.ts'
import { dataDirectory } from '../sdk/import/data-directory.node.ts'
import { adminTokenPath, readAdminToken } from './admin-token.ts'
import { DEFAULT_PORT } from './config.ts'
import { useModel } from './model-use.ts'

type UseFlags = { readonly host?: string; readonly data?: string; readonly anyway: boolean }

/**
 * Adds `crowdinfer model use`, below the command `model` where there is one already. `write` gets whole lines.
 */
export function addModelUseCommand(
  program: Command,
  write: (line: string) => void = (line) => void process.stdout.write(`${line}\n`),
): void {
  const present = program.commands.find((command) => command.name() === 'model')
  const model = present ?? addModelCommand(program)
  model
    .command('use <name>')
    .description('let a running host serve another model that it knows')
    .exitOverride()
    .configureOutput({ writeErr: () => undefined })
    .helpOption('--help', 'print this help')
    .option('--host <url>', `where the host is (default: http://localhost:${DEFAULT_PORT})`)
    .option('--data <dir>', "the host's --data, where the proof of its operator lies")
    .option('--anyway', 'also where the devices that are there can’t hold it', false)
    .action(async (name: string, flags: UseFlags) => {
      const { CROWDINFER_PORT: port, CROWDINFER_ADMIN_TOKEN: given } = process.env
      const folder = dataDirectory(flags.data)
      const token = given ?? (await readAdminToken(folder))
      if (token === null)
        throw new CrowdError(
          'not-the-operator',
          `there is no ${adminTokenPath(folder)}: give the --data of the host`,
        )
      await useModel(
        {
          host: flags.host ?? `http://localhost:${port ?? DEFAULT_PORT}`,
          token,
          model: name,
          anyway: flags.anyway,
        },
        { fetch: globalThis.fetch, wait, now: () => performance.now(), write },
      )
    })
}

function addModelCommand(program: Command): Command {
  const model = program.command('model').description('the models of a host').helpCommand(false)
  return model
    .exitOverride()
    .configureOutput({ writeErr: () => undefined })
    .helpOption('--help', 'print this help')
    .allowExcessArguments()
    .action(() => {
      throw new CrowdError('bad-option', 'model: say use')
    })
}
