import type { Response } from 'express'
import { apiFailure } from './api-error.ts'
import { chunkBody, usageChunk, usageOf, type Delta } from './answer-bodies.ts'
import { openEventStream, type EventStream } from './event-stream.ts'
import { routeReport } from './route-report.ts'
import type { ChoiceEvent } from './run-choices.ts'
import type { Sending } from './sending.ts'

/**
 * Sends an answer as it comes. Headers go out as soon as the host has not refused at once.
 * @throws CrowdError what was refused at once; any later failure is an event of the stream
 */
export async function sendStream(sending: Sending, response: Response): Promise<void> {
  const { queue } = sending
  const first = queue.next()
  await Promise.race([first, refusalsAreIn()])
  const stream = openEventStream(response, sending.later)
  const writer = createChunkWriter(sending, stream)
  try {
    writer.begin()
    for (let event = await first; event.kind !== 'done'; event = await queue.next())
      writer.event(event)
    writer.finish()
  } catch (thrown) {
    stream.data(apiFailure(thrown).body)
  } finally {
    stream.end()
  }
}

/** In this process the host answers a question that it can't take before anything else happens. */
async function refusalsAreIn(): Promise<void> {
  await new Promise<void>((resolve) => {
    setImmediate(resolve)
  })
}

type ChunkWriter = {
  begin(): void
  event(event: Exclude<ChoiceEvent, { kind: 'done' }>): void
  /** Counts and times, after every choice has ended. */
  finish(): void
}

function createChunkWriter(sending: Sending, stream: EventStream): ChunkWriter {
  const { head, request } = sending
  const offsets = Array.from({ length: sending.choices }, () => 0)
  let tokens = 0

  function chunk(delta: Omit<Delta, 'offset'>): void {
    const offset = offsets[delta.index] ?? 0
    offsets[delta.index] = offset + (delta.text ?? '').length
    stream.data(chunkBody(head, { ...delta, offset }, request.includeUsage))
  }
  const wanted = <T>(logprobs: T): T | null => (request.logprobs ? logprobs : null)

  function report(part: 'route' | 'timing'): void {
    const first = sending.first()
    const text = first === undefined ? '' : routeReport(sending.state(), first)[part]
    if (text !== '') stream.comment(`${part} ${text}`)
  }

  return {
    begin() {
      if (head.endpoint !== 'chat') return
      for (const index of offsets.keys()) chunk({ index, first: true, logprobs: null })
    },
    event(event) {
      const { index } = event
      if (event.kind === 'accepted') {
        if (index === 0) report('route')
        return
      }
      const logprobs = wanted(event.logprobs)
      if (event.kind === 'text') chunk({ index, text: event.text, logprobs })
      else {
        tokens += event.tokens
        chunk({ index, reason: event.reason, logprobs: logprobs?.length ? logprobs : null })
      }
    },
    finish() {
      report('timing')
      if (request.includeUsage) stream.data(usageChunk(head, usageOf(sending.promptTokens, tokens)))
    },
  }
}
