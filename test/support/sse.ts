/** What came over a stream of server-sent events so far, as it lies on the wire. */
export type SseReader = {
  /** The next block up to an empty line: a comment or an event; null at the end. */
  next(): Promise<string | null>
  /** All blocks up to the end. */
  rest(): Promise<string[]>
  cancel(): Promise<void>
}

export function readSse(response: Response): SseReader {
  if (response.body === null) throw new Error('no body')
  const reader = response.body.getReader()
  const decoder = new TextDecoder()
  let text = ''

  async function next(): Promise<string | null> {
    for (;;) {
      const end = text.indexOf('\n\n')
      if (end >= 0) {
        const block = text.slice(0, end)
        text = text.slice(end + 2)
        return block
      }
      const { done, value } = await reader.read()
      if (done) {
        if (text !== '') throw new Error(`the stream broke off in ${JSON.stringify(text)}`)
        return null
      }
      text += decoder.decode(value, { stream: true })
    }
  }

  return {
    next,
    async rest() {
      const blocks: string[] = []
      for (let block = await next(); block !== null; block = await next()) blocks.push(block)
      return blocks
    },
    cancel: () => reader.cancel(),
  }
}

/** The JSON of the events among blocks; comments and the end marker are left out. */
export function eventsOf(blocks: readonly string[]): Record<string, unknown>[] {
  const events = blocks.filter((block) => block.startsWith('data: ') && block !== 'data: [DONE]')
  // Cast: every event of the API is an object, and the test says which.
  return events.map((block) => JSON.parse(block.slice(6)) as Record<string, unknown>)
}
