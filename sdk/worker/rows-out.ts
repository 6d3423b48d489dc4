import { PREFILL_CHUNK_TOKENS } from '../core/limits.ts'
import type { ActivationFrame, Frame } from '../core/wire/frame.ts'
import type { RowRun, SentRows } from './sent-rows.ts'

/** What goes from a stage to the next one. */
export type RowsOut = {
  /** Rows that were just computed; those that the next stage has already stay here. */
  passOn(run: RowRun, about: About): Promise<void>
  /**
   * What the next stage lacks of the rows from `start` to `end`, which were computed here in an earlier epoch; ends
   * early once `isOver`. @throws CrowdError stage-lost: they aren't kept any more
   */
  replay(start: number, end: number, isOver: () => boolean): Promise<void>
}

type About = Pick<ActivationFrame, 'step' | 'sample' | 'computeMicros'>

export function createRowsOut(deps: {
  readonly head: Pick<ActivationFrame, 'session' | 'epoch' | 'hiddenSize'>
  readonly sent: SentRows
  /** Position of the first row that the next stage must get. */
  forward(): number
  sendFrame(frame: Frame): Promise<void>
}): RowsOut {
  const { head, sent } = deps

  async function send({ position, rows, data }: RowRun, about: About): Promise<void> {
    await deps.sendFrame({
      kind: 'activation',
      ...head,
      ...about,
      position,
      tokenCount: rows,
      data,
    })
  }

  return {
    async passOn({ position, rows, data }, about) {
      const skipped = Math.max(0, deps.forward() - position)
      if (skipped >= rows) return
      const left = data.subarray(skipped * head.hiddenSize)
      await send({ position: position + skipped, rows: rows - skipped, data: left }, about)
    },
    async replay(start, end, isOver) {
      for (const run of sent.runs(start, end, PREFILL_CHUNK_TOKENS)) {
        if (isOver()) return
        await send(run, { step: 0, sample: false, computeMicros: 0 })
      }
    },
  }
}
