import { CrowdError } from '../sdk/core/errors.ts'
import { createTextStream } from '../sdk/core/text/text-stream.ts'
import { GREEDY, type SampledToken, type SamplingParams } from '../sdk/core/sampling/params.ts'
import {
  openChain,
  openModel,
  type LocalAnswer,
  type LocalChain,
  type LocalRequest,
  type OpenedModel,
} from '../sdk/index.node.ts'

export type RunOptions = {
  readonly stages: number
  readonly greedy: boolean
  readonly seed: number
  readonly temperature: number
  readonly maxTokens: number
  /** The prompt as it is, with no chat template. */
  readonly raw: boolean
  readonly json: boolean
  readonly data: string
}

/** What `--json` prints. */
type RunResult = {
  readonly model: string
  readonly provider: string
  readonly stages: number
  readonly promptIds: readonly number[]
  readonly ids: readonly number[]
  readonly text: string
  readonly reason: 'stop' | 'length'
  readonly msPerStage: readonly number[]
  readonly firstTokenMs: number
  readonly totalMs: number
}

/**
 * `crowdinfer run MODEL "prompt"`: the model in this process, cut into stages. `write` gets the text as it
 * comes. @throws CrowdError as openModel, and prompt-too-long, bad-option
 */
export async function runPrompt(
  modelName: string,
  prompt: string,
  options: RunOptions,
  write: (text: string) => void,
): Promise<RunResult> {
  if (prompt === '') throw new CrowdError('bad-option', 'the prompt is empty')
  const model = await openModel(modelName, options.data)
  const promptIds = options.raw
    ? model.tokenizer.encode(prompt, { control: true })
    : model.tokenizer.encodeChat([{ role: 'user', content: prompt }])
  const chain = await openChain(model, options.stages)
  try {
    const shown = await showAnswer(model, chain, write, {
      prompt: promptIds,
      maxTokens: options.maxTokens,
      sampling: samplingOf(options),
    })
    return result(model, options, { promptIds, ...shown, provider: chain.report.provider })
  } finally {
    await chain.close()
  }
}

/** Whatever was written of an answer that failed ends its line, so that the error begins on its own. */
async function showAnswer(
  model: OpenedModel,
  chain: LocalChain,
  write: (text: string) => void,
  request: LocalRequest,
): Promise<{ readonly answer: LocalAnswer; readonly text: string }> {
  const shown = createTextStream({ decode: (ids) => model.tokenizer.decode(ids), stops: [] })
  let text = ''
  const show = (piece: string): void => {
    if (piece === '') return
    text += piece
    write(piece)
  }
  try {
    const onToken = ({ token }: SampledToken): void => show(shown.push(token).text)
    const answer = await chain.generate({ ...request, onToken })
    show(shown.end().text)
    return { answer, text }
  } catch (thrown) {
    if (text !== '') write('\n')
    throw thrown
  }
}

function samplingOf(options: RunOptions): SamplingParams {
  return options.greedy
    ? GREEDY
    : { ...GREEDY, temperature: options.temperature, topP: 0.95, seed: options.seed }
}

function result(
  model: OpenedModel,
  options: RunOptions,
  run: { promptIds: number[]; answer: LocalAnswer; text: string; provider: string },
): RunResult {
  const round = (ms: number): number => Math.round(ms * 1_000) / 1_000
  return {
    model: model.name,
    provider: run.provider,
    stages: options.stages,
    promptIds: run.promptIds,
    ids: run.answer.ids,
    text: run.text,
    reason: run.answer.reason,
    msPerStage: run.answer.msPerStage.map(round),
    firstTokenMs: round(run.answer.firstTokenMs),
    totalMs: round(run.answer.totalMs),
  }
}
