import type { Command } from 'commander'
import { CrowdError } from '../sdk/core/errors.ts'
import { dataDirectory } from '../sdk/import/data-directory.node.ts'
import { createApiKeys, type ApiKey } from './api-keys.ts'

type KeyFlags = { readonly data?: string }

/** Adds `crowdinfer key add|list|revoke`. `write` gets whole lines. */
export function addKeyCommands(program: Command, write: (line: string) => void = print): void {
  const folderOf = (flags: KeyFlags) => dataDirectory(flags.data)
  const keys = (flags: KeyFlags) => createApiKeys(folderOf(flags))
  const key = quiet(program.command('key').description('keys of the API under /v1')).helpCommand(
    false,
  )

  key.allowExcessArguments().action(() => {
    throw new CrowdError('bad-option', 'key: say add, list or revoke')
  })
  withData(key.command('add [name]'))
    .description('make a key; from then on /v1 needs one')
    .action(async (name: string | undefined, flags: KeyFlags) => {
      const added = await keys(flags).add(name ?? '')
      write(added.key)
      write(`This is shown once. ${takesEffect(`Key ${added.id}`, folderOf(flags))}`)
    })
  withData(key.command('list'))
    .description('list the keys')
    .action(async (flags: KeyFlags) => {
      const all = await keys(flags).list()
      if (all.length === 0) write('No keys.')
      for (const one of all) write(lineOf(one))
    })
  withData(key.command('revoke <id-or-name>'))
    .description('make a key invalid within a second')
    .action(async (idOrName: string, flags: KeyFlags) => {
      const revoked = await keys(flags).revoke(idOrName)
      write(`Revoked ${lineOf(revoked)}`)
      write(takesEffect('This', folderOf(flags)))
      if ((await keys(flags).list()).length === 0) write(LAST_REVOKED)
    })
}

const LAST_REVOKED =
  'This was the last key: now whoever has the pool’s secret may use /v1; in an open pool everybody.'

/** A host with another data folder would not see it, which is hard to find out later. */
function takesEffect(what: string, folder: string): string {
  return `${what} takes effect within a second for the host whose data folder is ${folder}, and for no other.`
}

function withData(command: Command): Command {
  return quiet(command).option(
    '--data <dir>',
    'the --data of the host that the keys are for (default: ~/.crowdinfer)',
  )
}

function quiet(command: Command): Command {
  return command
    .exitOverride()
    .configureOutput({ writeErr: () => undefined })
    .helpOption('--help', 'print this help')
}

/** Names are what their owner typed: control characters must not reach a terminal. */
function lineOf({ id, name, createdAt }: ApiKey): string {
  return `${id}  ${createdAt}  ${name.replace(/\p{Cc}/gu, '?')}`.trimEnd()
}

function print(line: string): void {
  process.stdout.write(`${line}\n`)
}
