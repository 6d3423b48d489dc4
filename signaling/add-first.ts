import { readHubSettings } from '../sdk/hub/hub-settings.node.ts'
import { readModelRef } from '../sdk/hub/model-ref.ts'
import { findModel } from '../sdk/import/stored-model.node.ts'
import { addWithProgress } from './add-with-progress.ts'
import type { ProgressOutput } from '../sdk/terminal/progress-line.ts'

/**
 * For whoever starts a host with a model of the hub: adds it, unless the name or id is known here already.
 * @throws CrowdError as addModel
 */
export async function addFirst(
  model: string,
  dataDir: string,
  context: {
    readonly output: ProgressOutput
    readonly environment: Readonly<Record<string, string | undefined>>
  },
): Promise<void> {
  const { output, environment } = context
  if (readModelRef(model) === null || (await findModel(model, dataDir)) !== null) return
  const hub = () =>
    readHubSettings({ environment, notice: (line) => void output.write(`  ${line}\n`) })
  const { signal } = new AbortController()
  await addWithProgress({ source: model, dataDir, hub, signal }, { output, confirm: null })
}
