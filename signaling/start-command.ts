import { stat } from 'node:fs/promises'
import { join } from 'node:path'
import { toString as qrText } from 'qrcode'
import { toCrowdError } from '../sdk/core/errors.ts'
import { packageRoot } from '../sdk/import/package-root.node.ts'
import { builtinDirectory, storeModel } from '../sdk/import/stored-model.node.ts'
import { openTokenizer } from '../sdk/index.node.ts'
import { addFirst } from './add-first.ts'
import { createApiKeys } from './api-keys.ts'
import type { Config } from './config.ts'
import { createGuard } from './guard.ts'
import { createLiveStatus } from './live-status.ts'
import { openBrowser } from './open-browser.ts'
import type { ModelLibrary } from './model-library.ts'
import { createStoredLibrary } from './stored-library.ts'
import { createHost, type Host, type HostDeps, type StartedHost } from './server.ts'
import { bannerLines, statusLine } from './status-lines.ts'

/** How often the state is looked at for the terminal. */
const STATUS_MS = 250
const SIGNALS = ['SIGINT', 'SIGTERM'] as const

/** The parts of the host that a command needs, for the package as it lies on disk. */
export function hostDeps(progress: (line: string) => void): HostDeps {
  return {
    siteDir: join(packageRoot(), 'dist', 'site'),
    openLibrary,
    async prepareModel(config) {
      const { model, dataDir } = config
      await addFirst(model, dataDir, { output: process.stdout, environment: process.env })
      const library = openLibrary(config)
      const known = (await library.list()).find(({ name }) => name === model)
      // A directory or file of that name counts more than what was once made of it.
      if (known?.isBuiltin === false && !(await exists(model)))
        return await library.open(model, (step) => progress(step))
      const { name, manifest, storeDir } = await storeModel(model, dataDir, {
        found: (found) =>
          progress(
            `preparing the model ${found.name} (once, then it is kept in ${found.storeDir})`,
          ),
      })
      return { name, isBuiltin: known?.isBuiltin ?? false, manifest, directory: storeDir }
    },
    openTokenizer: ({ directory, manifest }) => openTokenizer(directory, manifest),
    log: logFault,
  }
}

function openLibrary({ dataDir }: Config): ModelLibrary {
  return createStoredLibrary({ builtinDir: builtinDirectory(), dataDir })
}

async function exists(path: string): Promise<boolean> {
  return stat(path).then(
    () => true,
    () => false,
  )
}

/**
 * `crowdinfer start`: hosts until SIGINT or SIGTERM, then closes cleanly. A second signal ends at once.
 * @throws CrowdError as Host.start
 */
export async function startCommand(config: Config): Promise<void> {
  const host = createHost(
    config,
    hostDeps((line) => console.log(`  ${line}`)),
  )
  const started = await host.start()
  for (const line of bannerLines({
    started,
    modelId: started.model.manifest.id,
    hasKeys: await hasKeys(config),
    qrCode: await qrCodeOf(started),
  }))
    console.log(line)
  if (config.open && !(await openBrowser(started.urls.chat, process.platform)))
    console.warn(`  No browser could be opened here: open ${started.urls.chat} yourself.`)
  await hostUntilSignal(host)
}

/** On a line of its own: the status line may stand there. */
function logFault(line: string): void {
  console.error(`\n  ${line}`)
}

/** Keys that can't be read count: then the API takes nothing else either. */
async function hasKeys({ dataDir }: Config): Promise<boolean> {
  try {
    return (await createApiKeys(dataDir).list()).length > 0
  } catch (thrown) {
    logFault(toCrowdError(thrown).message)
    return true
  }
}

async function qrCodeOf(started: StartedHost): Promise<string> {
  const [url] = started.urls.lanJoin
  if (url === undefined) return ''
  return await qrText(url, { type: 'terminal', small: true })
}

async function hostUntilSignal(host: Host): Promise<void> {
  const status = createLiveStatus(process.stdout, () => performance.now())
  const guard = createGuard(logFault)
  const show = (): void => status.show(statusLine(host.service().snapshot()))
  const timer = setInterval(() => guard('the status line', show), STATUS_MS)
  await new Promise<void>((resolve) => {
    for (const signal of SIGNALS) process.once(signal, () => resolve())
  })
  clearInterval(timer)
  status.close()
  console.log('  Stopping. Devices keep what they downloaded.')
  await host.close()
}
