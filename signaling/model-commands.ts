import { CrowdError } from '../sdk/core/errors.ts'
import { readHubSettings } from '../sdk/hub/hub-settings.node.ts'
import type { HubOptions } from '../sdk/hub/hub-options.ts'
import { parseModelRef } from '../sdk/hub/model-ref.ts'
import { dataDirectory } from '../sdk/import/data-directory.node.ts'
import { builtinDirectory } from '../sdk/import/stored-model.node.ts'
import { builtinModels } from '../sdk/import/resolve-model.node.ts'
import { inspectModel } from '../sdk/inspect-model.node.ts'
import { verifyModel } from '../sdk/verify-model.node.ts'
import { addWithProgress } from './add-with-progress.ts'
import { readCatalogue } from './catalogue.ts'
import { createAsker, type Terminal } from './ask-person.ts'
import { lentDevices } from './lent-devices.ts'
import { listLines, listModels } from './list-models.ts'
import { formatBytes, plain, table } from '../sdk/terminal/format.ts'
import { inspectLines } from './model-texts.ts'
import type { HubFlags, ModelCommands, RecommendFlags } from './model-flags.ts'
import { createProgressLine } from '../sdk/terminal/progress-line.ts'
import { recommend, type Recommendation } from './recommend.ts'
import { removeModel } from './remove-model.ts'

type CommandDeps = Terminal & {
  readonly environment: Readonly<Record<string, string | undefined>>
}

/** What `crowdinfer model …` does. Ctrl-C stops cleanly: what was downloaded is kept. */
export function createModelCommands(deps: CommandDeps): ModelCommands {
  const { output, environment } = deps
  const print = (...lines: readonly string[]): void =>
    void output.write(lines.map((line) => `${line}\n`).join(''))
  const printJson = (value: unknown): void => print(JSON.stringify(value, null, 2))
  const columns = (): number => output.columns ?? 100
  const ask = createAsker(deps)
  const dataOf = (flags: { readonly data?: string }) => dataDirectory(flags.data, environment)
  const hubOf = (flags: HubFlags): Promise<HubOptions> =>
    readHubSettings({
      environment,
      hub: flags.hub,
      tokenFile: flags.tokenFile,
      notice: (line) => print(`  ${line}`),
    })

  return {
    async add(source, { yes, revision, ...flags }) {
      const full = revision === undefined ? source : withRevision(source, revision)
      const { dtype, name, context, keepSource } = flags
      await withInterrupt((signal) =>
        addWithProgress(
          {
            source: full,
            dataDir: dataOf(flags),
            hub: () => hubOf(flags),
            signal,
            dtype,
            name,
            contextLength: context,
            keepSource,
          },
          { output, confirm: yes === true ? null : ask },
        ),
      )
    },
    async list(flags) {
      const models = await listModels(dataOf(flags))
      if (flags.json === true) printJson(models)
      else print(...listLines(models, columns()))
    },
    async inspect(model, flags) {
      const { dtype, context: contextLength } = flags
      const hub = await hubOf(flags)
      const report = await withInterrupt((signal) =>
        inspectModel({ model, dataDir: dataOf(flags), hub, signal, dtype, contextLength }),
      )
      if (flags.json === true) printJson(report)
      else print(...inspectLines(report, columns()))
    },
    async remove(name, flags) {
      const freed = await removeModel(dataOf(flags), name, flags.yes === true ? null : ask)
      print(
        freed === null ? 'Nothing was removed.' : `Removed ${name}: ${formatBytes(freed)} freed.`,
      )
    },
    async verify(name, flags) {
      const line = createProgressLine('checking', output, () => performance.now())
      const isQuiet = flags.json === true
      const onProgress = (done: number, total: number): void => {
        if (!isQuiet) line.show({ done, total, unit: 'bytes' })
      }
      const verified = await withInterrupt((signal) =>
        verifyModel(dataOf(flags), name, { signal, onProgress }),
      ).finally(() => line.close())
      const { damaged, pieces, bytes } = verified
      if (isQuiet) printJson({ name, ...verified })
      else
        print(
          ...damaged.map(
            (one) => `${one.sha256.slice(0, 12)}  ${one.problem}  ${one.parts.join(', ')}`,
          ),
        )
      if (damaged.length === 0) {
        if (!isQuiet) print(`${name} is sound: ${pieces} pieces, ${formatBytes(bytes)}.`)
        return
      }
      throw new CrowdError('model-invalid', await repairHint(name, damaged.length, pieces))
    },
    async recommend(flags) {
      const devices = await lentDevices(flags)
      const found = recommend(await readCatalogue(), devices, flags.context ?? 4096)
      if (flags.json === true) printJson(found.map(flatten))
      else print(...recommendLines(found, flags, columns()))
    },
  }
}

/** @throws CrowdError bad-option */
function withRevision(source: string, revision: string): string {
  const ref = parseModelRef(source)
  if (ref.revision !== null && ref.revision !== revision) {
    throw new CrowdError('bad-option', `--revision: ${source} names another revision already`)
  }
  const part = ref.part === null ? '' : `:${ref.part}`
  return `${ref.repo}@${revision}${part}`
}

async function withInterrupt<T>(work: (signal: AbortSignal) => Promise<T>): Promise<T> {
  const stop = new AbortController()
  const onSignal = (): void => stop.abort()
  process.once('SIGINT', onSignal)
  process.once('SIGTERM', onSignal)
  try {
    return await work(stop.signal)
  } finally {
    process.off('SIGINT', onSignal)
    process.off('SIGTERM', onSignal)
  }
}

async function repairHint(name: string, damaged: number, pieces: number): Promise<string> {
  const what = `${damaged} of ${pieces} pieces of ${name} are damaged`
  if ((await builtinModels(builtinDirectory())).includes(name)) {
    return `${what}: delete its folder under models in the data folder, the next start makes it anew`
  }
  return `${what}: crowdinfer model remove ${name}, then add it again`
}

function flatten({ entry, dtype, stages, contextLength }: Recommendation) {
  const { id, parameters, licence, gated, bytes } = entry
  return { id, dtype, bytes: bytes[dtype], parameters, stages, contextLength, licence, gated }
}

function recommendLines(
  found: readonly Recommendation[],
  flags: RecommendFlags,
  columns: number,
): string[] {
  if (found.length === 0) {
    return [
      'No model of the catalogue fits these devices. More of them, more memory of each, or a smaller --context help.',
    ]
  }
  const rows = found.map(({ entry, dtype, stages }) => [
    plain(entry.id),
    dtype,
    formatBytes(entry.bytes[dtype]),
    String(stages),
    entry.gated ? `${entry.licence}, gated` : entry.licence,
  ])
  const [best] = found
  return [
    ...table([['MODEL', 'DTYPE', 'SIZE', 'STAGES', 'LICENCE'], ...rows], columns),
    '',
    `Planned for ${flags.context ?? 4096} tokens. Add one: crowdinfer model add ${best?.entry.id ?? ''} --dtype ${best?.dtype ?? ''}`,
  ]
}
