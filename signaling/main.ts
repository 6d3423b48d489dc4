import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { toCrowdError } from '../sdk/core/errors.ts'
import { packageRoot } from '../sdk/import/package-root.node.ts'
import { runCli } from './cli.ts'
import { addKeyCommands } from './key-cli.ts'
import { addModelCommands } from './model-cli.ts'
import { addModelUseCommand } from './model-use-cli.ts'
import { addPlanCommand } from './plan-cli.ts'
import { addRunCommand } from './run-cli.ts'
import { startCommand } from './start-command.ts'

/** bin `crowdinfer`. */
async function main(): Promise<void> {
  try {
    process.exitCode = await runCli(
      process.argv.slice(2),
      {
        start: startCommand,
        commands: [
          addRunCommand,
          addPlanCommand,
          addModelCommands,
          addModelUseCommand,
          addKeyCommands,
        ],
      },
      { version: packageVersion(), environment: process.env },
    )
  } catch (thrown) {
    const error = toCrowdError(thrown)
    console.error(`crowdinfer: ${error.message}`)
    console.error(`  ${error.hint}`)
    process.exitCode = 1
  }
}

function packageVersion(): string {
  const text = readFileSync(join(packageRoot(), 'package.json'), 'utf8')
  const parsed: unknown = JSON.parse(text)
  const isPackage = typeof parsed === 'object' && parsed !== null && 'version' in parsed
  return isPackage && typeof parsed.version === 'string' ? parsed.version : '0'
}

await main()
