import type { Response } from 'express'
import { CrowdError } from '../../sdk/core/errors.ts'
import type { Tokenizer } from '../../sdk/index.node.ts'
import { FieldError } from './api-error.ts'
import type { ApiModel } from './api-model.ts'
import type { AnswerHead } from './answer-bodies.ts'
import type { ApiRequest, Prompt } from './parse-request.ts'
import { refuseTooLong } from './refuse-too-long.ts'
import { runChoices } from './run-choices.ts'
import { takeSeat, type SeatDeps } from './seat.ts'
import { sendStream } from './send-stream.ts'
import { sendWhole } from './send-whole.ts'

export type AnswerDeps = Omit<SeatDeps, 'manifest'> & {
  /** Served when the request came. */
  readonly model: ApiModel
  /** Uniform, unsigned 32-bit. */
  randomSeed(): number
  /** Seconds since 1970. */
  nowS(): number
}

/**
 * Answers a checked request over HTTP. When the other end closes, whatever the ring still computes for it is
 * cancelled.
 * @throws CrowdError before anything was sent; later failures go out as an event of the stream
 */
export async function answerRequest(
  deps: AnswerDeps,
  request: ApiRequest,
  response: Response,
): Promise<void> {
  const gone = new AbortController()
  response.once('close', () => gone.abort())
  const { manifest } = deps.model
  checkAgainstModel(deps, request)
  const tokenizer = await deps.model.tokenizer()
  const { contextLength } = manifest
  for (const prompt of request.prompts)
    await refuseTooLong(tokenizer, textsOf(prompt), contextLength)
  const promptIds = request.prompts.map((prompt) => encode(tokenizer, prompt))
  // Closed meanwhile: nobody is left to answer.
  if (response.destroyed) return
  const head = headOf(deps, request)
  const seat = takeSeat({ ...deps, manifest }, tokenizer, 'API')
  try {
    const queue = runChoices(
      {
        client: seat.client,
        tokenizer,
        endIds: new Set(manifest.eosTokenIds),
        request,
        promptIds,
        seed: request.seeded ? request.sampling.seed : deps.randomSeed(),
      },
      gone.signal,
    )
    response.set('X-Request-Id', head.id)
    const sending = {
      head,
      request,
      queue,
      promptTokens: promptIds.reduce((sum, ids) => sum + ids.length, 0),
      choices: promptIds.length * request.n,
      state: () => deps.service.state(),
      first: () => seat.first(),
      later: deps.later,
    }
    await (request.stream ? sendStream(sending, response) : sendWhole(sending, response))
  } finally {
    seat.close()
  }
}

function headOf(deps: AnswerDeps, request: ApiRequest): AnswerHead {
  const { id, revision } = deps.model.manifest
  return {
    endpoint: request.endpoint,
    id: `${request.endpoint === 'chat' ? 'chatcmpl' : 'cmpl'}-${deps.randomId()}`,
    created: deps.nowS(),
    model: id,
    fingerprint: `crowdinfer-${revision.slice(0, 16)}`,
  }
}

/** @throws CrowdError model-not-found, model-changed, FieldError */
function checkAgainstModel({ model, service }: AnswerDeps, request: ApiRequest): void {
  const { manifest } = model
  const next = service.state().change?.next?.model.id
  if (request.model === next && next !== manifest.id)
    throw new CrowdError('model-changed', `the host is changing from ${manifest.id} to ${next}`)
  if (request.model !== manifest.id)
    throw new CrowdError(
      'model-not-found',
      `this host serves ${manifest.id}, not ${JSON.stringify(request.model.slice(0, 80))}`,
    )
  const stranger = request.sampling.logitBias.find(([token]) => token >= manifest.vocabSize)
  if (stranger !== undefined)
    throw new FieldError(
      'logit_bias',
      `logit_bias: token ${stranger[0]} is not in the vocabulary of ${manifest.vocabSize}`,
    )
}

function textsOf(prompt: Prompt): readonly string[] {
  if ('messages' in prompt) return prompt.messages.map(({ content }) => content)
  return 'prompt' in prompt ? [prompt.prompt] : []
}

/** @throws CrowdError bad-request, when the chat template refuses */
function encode(tokenizer: Tokenizer, prompt: Prompt): readonly number[] {
  if ('messages' in prompt) return tokenizer.encodeChat(prompt.messages)
  return 'promptIds' in prompt ? prompt.promptIds : tokenizer.encode(prompt.prompt)
}
