import { addModel, type AddModelRequest } from '../sdk/add-model.node.ts'
import type { ExportChoice } from '../sdk/core/model/onnx/export-files.ts'
import type { HubOptions } from '../sdk/hub/hub-options.ts'
import { storedBytes, type AddedModel } from '../sdk/import/model-registry.node.ts'
import type { Ask } from './ask-person.ts'
import { formatBytes, formatSeconds, plain } from '../sdk/terminal/format.ts'
import {
  createProgressLine,
  type ProgressLine,
  type ProgressOutput,
} from '../sdk/terminal/progress-line.ts'

type AddRequest = Omit<AddModelRequest, 'on' | 'hub'> & { hub(): Promise<HubOptions> }

/** Adds a model and shows how far it is. `confirm`: asked before a download; null = go ahead. */
export async function addWithProgress(
  request: AddRequest,
  view: { readonly output: ProgressOutput; readonly confirm: Ask | null },
): Promise<AddedModel> {
  const { output, confirm } = view
  const print = (line: string): void => void output.write(`${line}\n`)
  const now = (): number => performance.now()
  const phases: { line: ProgressLine; name: string }[] = []
  const phase = (name: string): ProgressLine => {
    const last = phases.at(-1)
    if (last?.name === name) return last.line
    last?.line.close()
    const line = createProgressLine(name, output, now)
    phases.push({ line, name })
    return line
  }
  const settings = await request.hub()
  const notice = (text: string): void => {
    const last = phases.at(-1)
    if (last) last.line.say(text)
    else print(text)
  }
  const started = now()
  try {
    const added = await addModel({
      ...request,
      hub: { ...settings, notice },
      on: {
        choice: (choice) => {
          const line = choiceLine(choice)
          if (line !== null) print(line)
        },
        confirm: async ({ name, from, downloadBytes, storeBytes }) => {
          const room = `${formatBytes(downloadBytes)} to download, about ${formatBytes(storeBytes)} to keep`
          print(`${plain(from)} from ${settings.hubUrl.host}: ${room}, as ${name}`)
          if (confirm === null || downloadBytes === 0) return true
          return (await confirm('Go on?')) ?? true
        },
        download: ({ doneBytes, totalBytes }) =>
          phase('downloading').show({ done: doneBytes, total: totalBytes, unit: 'bytes' }),
        import: ({ doneBlocks, totalBlocks }) =>
          phase('cutting').show({ done: doneBlocks, total: totalBlocks, unit: 'blocks' }),
      },
    })
    phases.at(-1)?.line.close()
    print(summary(added, phases.length === 0 ? null : (now() - started) / 1000))
    return added
  } finally {
    phases.at(-1)?.line.close()
  }
}

/** null where there was nothing to choose. */
function choiceLine({ path, dtype, others }: ExportChoice): string | null {
  if (dtype === null || others.length === 0) return null
  return `of the ONNX exports: ${dtype} (${plain(path)}); --dtype takes another: ${others.join(', ')}`
}

function summary({ name, manifest, keptSource }: AddedModel, seconds: number | null): string {
  const kept = keptSource === null ? '' : `\nThe download is kept in ${plain(keptSource)}.`
  const size = formatBytes(storedBytes(manifest))
  const how = seconds === null ? 'is here already' : `is ready after ${formatSeconds(seconds)}`
  return `${name} ${how} (${manifest.dtype}, ${size}). Host it: crowdinfer start --model ${name}${kept}`
}
