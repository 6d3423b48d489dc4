import type { Response } from 'express'
import { answerBody, usageOf, type ChoiceResult } from './answer-bodies.ts'
import type { TokenLogprob } from './logprobs.ts'
import { routeReport } from './route-report.ts'
import type { Sending } from './sending.ts'

type Draft = { text: string; reason: 'stop' | 'length' | null; logprobs: TokenLogprob[] }

/** Waits for every choice, then sends one JSON body. @throws CrowdError as Client.generate */
export async function sendWhole(sending: Sending, response: Response): Promise<void> {
  const { head, request, queue } = sending
  const drafts = Array.from({ length: sending.choices }, (): Draft => ({
    text: '',
    reason: null,
    logprobs: [],
  }))
  let tokens = 0
  for (let event = await queue.next(); event.kind !== 'done'; event = await queue.next()) {
    const draft = drafts[event.index]
    if (draft === undefined || event.kind === 'accepted') continue
    draft.logprobs.push(...event.logprobs)
    if (event.kind === 'text') draft.text += event.text
    else {
      draft.reason = event.reason
      tokens += event.tokens
    }
  }
  const choices = drafts.flatMap(({ text, reason, logprobs }): ChoiceResult[] =>
    reason === null ? [] : [{ text, reason, logprobs: request.logprobs ? logprobs : null }],
  )
  // Cancelled: the other end is gone.
  if (choices.length < drafts.length || response.destroyed) return
  setReport(sending, response)
  response.json(answerBody(head, choices, usageOf(sending.promptTokens, tokens)))
}

function setReport(sending: Sending, response: Response): void {
  const first = sending.first()
  if (first === undefined) return
  const { route, timing } = routeReport(sending.state(), first)
  response.set('X-Crowdinfer-Route', route)
  if (timing !== '') response.set('Server-Timing', timing)
}
