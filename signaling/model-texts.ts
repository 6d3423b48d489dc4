import type { ModelReport } from '../sdk/inspect-model.node.ts'
import { cutLine, formatBytes, formatCount, plain, table } from '../sdk/terminal/format.ts'

/** What `model inspect` prints. Pure: printing is the command's. */
export function inspectLines(report: ModelReport, columns: number): string[] {
  const { blocks, devices } = report
  const context = `at ${report.contextLength} tokens`
  const pair = (label: string, text: string): string =>
    cutLine(`  ${label.padEnd(14)}${text}`, columns)
  return [
    plain(report.name),
    pair('from', plain(report.from)),
    pair('state', STATES[report.state]),
    pair('architecture', plain(report.architecture)),
    pair(
      'weights',
      `${formatCount(report.weights)}, ${report.dtype}, ${formatBytes(report.storedBytes)} on disk`,
    ),
    pair('layers', `${report.layerCount}, ${report.hiddenSize} wide`),
    pair('heads', `${report.headCount}, ${report.kvHeadCount} for keys and values`),
    pair('context', `${report.contextLength} tokens`),
    pair(
      'cache',
      `${formatBytes(report.kvBytesPerToken)} a token, ${formatBytes(report.kvBytesPerToken * report.contextLength)} ${context}`,
    ),
    pair('has', capabilities(report)),
    '',
    ...table(
      [
        ['  block', 'stored', 'q4', 'q8', 'f16', 'f32'],
        ...blocks.map(({ name, bytes, byDtype }) => [
          `  ${name}`,
          ...[bytes, byDtype.q4, byDtype.q8, byDtype.f16, byDtype.f32].map(formatBytes),
        ]),
      ],
      columns,
    ),
    '',
    ...table(
      [
        ['  devices of', 'with a GPU', 'without'],
        ...devices.map(({ gigabytes, gpu, wasm }) => [
          `  ${gigabytes} GB`,
          deviceCount(gpu),
          deviceCount(wasm),
        ]),
      ],
      columns,
    ),
    cutLine(`  pledged for weights and the caches of two answers ${context}`, columns),
  ]
}

const STATES = {
  ready: 'ready to serve',
  preview: 'not cut yet: planned from its config and headers',
} as const

function deviceCount(count: number | null): string {
  return count === null ? 'too small' : String(count)
}

function capabilities(report: ModelReport): string {
  const { chatTemplate, experts, slidingWindow, tiedEmbedding } = report
  const parts = [
    chatTemplate === null
      ? 'chat template not known'
      : chatTemplate
        ? 'chat template'
        : 'no chat template',
    tiedEmbedding ? 'tied embedding' : 'own head',
    ...(experts === null || experts === 0 ? [] : [`${experts} experts`]),
    ...(slidingWindow === null || slidingWindow === 0
      ? []
      : [`sliding window of ${slidingWindow}`]),
  ]
  return parts.join(', ')
}
