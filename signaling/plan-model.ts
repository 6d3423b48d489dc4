import { CrowdError } from '../sdk/core/errors.ts'
import { isRecord } from '../sdk/core/model/json-fields.ts'
import type { WeightDtype } from '../sdk/core/model/manifest.ts'
import type { PlanModel } from '../sdk/core/plan/device.ts'
import { openKnownModel } from '../sdk/import/model-registry.node.ts'
import { openModelSource } from '../sdk/import/model-source.node.ts'
import { previewConfig } from '../sdk/import/preview-model.ts'
import { findModel } from '../sdk/import/stored-model.node.ts'
import { readCatalogue } from './catalogue.ts'
import { planModelOf } from './recommend.ts'

export type NamedModel = {
  readonly name: string
  readonly isBuiltin: boolean
  readonly model: PlanModel
}

type ModelRequest = {
  /** A built-in or added model, a path, or an id of the catalogue. */
  readonly name: string
  readonly dataDir: string
  /** Of a model that is not cut yet. */
  readonly dtype?: WeightDtype | undefined
  readonly contextLength?: number | undefined
}

/** Sizes of a model for the planner; cuts and downloads nothing. @throws CrowdError model-not-found, model-invalid, model-unsupported */
export async function readPlanModel(request: ModelRequest): Promise<NamedModel> {
  const { name, dataDir, contextLength } = request
  const found = await findModel(name, dataDir)
  if (found === null) return fromCatalogue(request)
  if (found.kind === 'added') {
    const { manifest } = await openKnownModel(dataDir, found.known)
    const model = { ...manifest, contextLength: contextLength ?? manifest.contextLength }
    return { name, isBuiltin: false, model }
  }
  const source = await openModelSource(found.path)
  try {
    const dtype = request.dtype ?? ownDtype(source.config)
    const model = previewConfig(source.config, dtype, contextLength)
    return { name: found.name, isBuiltin: found.kind === 'builtin', model }
  } finally {
    await source.close()
  }
}

async function fromCatalogue({
  name,
  dtype = 'q4',
  contextLength = 4_096,
}: ModelRequest): Promise<NamedModel> {
  const entry = (await readCatalogue()).find(({ id }) => id.toLowerCase() === name.toLowerCase())
  if (entry === undefined) {
    const message = `There is no built-in or added model, path or model of the catalogue "${name}".`
    throw new CrowdError('model-not-found', message)
  }
  if (dtype === 'f32')
    throw new CrowdError('bad-option', '--dtype: the catalogue knows q4, q8 and f16')
  const model = planModelOf(entry, dtype, Math.min(contextLength, entry.context))
  return { name: entry.id, isBuiltin: false, model }
}

/** What importing would choose. */
function ownDtype(config: unknown): WeightDtype {
  const fields = isRecord(config) ? config : {}
  return (fields['torch_dtype'] ?? fields['dtype']) === 'float32' ? 'f32' : 'f16'
}
