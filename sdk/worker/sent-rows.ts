import { CrowdError } from '../core/errors.ts'

/** A run of rows that were sent: f32 [rows, hidden size] from `position` on. */
export type RowRun = {
  readonly position: number
  readonly rows: number
  readonly data: Float32Array
}

/** What the sessions of one device may keep together, bytes. */
export type ReplayBudget = { readonly limitBytes: number; usedBytes: number }

/**
 * The hidden states that a stage computed for one session, from position 0 on without a gap, to be sent again when
 * the stage behind it is replaced. What goes over the device's budget is given up as a whole: a part would
 * not help anybody.
 */
export type SentRows = {
  /** Rows that can be sent again; 0 once the run from position 0 was given up. */
  readonly length: number
  /** Rows at `position` and behind are replaced by `data`, which is kept as it is, not copied. */
  append(position: number, data: Float32Array): void
  /** Forgets what is at `position` and behind. */
  cut(position: number): void
  /**
   * The rows from `start` to `end`, in runs of at most `rowsMax`. @throws CrowdError stage-lost: they aren't kept, or not
   * any more when a run's turn comes
   */
  runs(start: number, end: number, rowsMax: number): Generator<RowRun>
}

export function createSentRows(budget: ReplayBudget, hiddenSize: number): SentRows {
  let parts: RowRun[] = []
  let length = 0

  function release(part: RowRun): void {
    budget.usedBytes -= part.data.byteLength
  }

  function cut(position: number): void {
    if (position >= length) return
    length = position
    for (let last = parts.at(-1); last !== undefined; last = parts.at(-1)) {
      if (last.position + last.rows <= position) return
      parts.pop()
      release(last)
      if (last.position >= position) continue
      const rows = position - last.position
      add({ position: last.position, rows, data: last.data.slice(0, rows * hiddenSize) })
      return
    }
  }

  function add(part: RowRun): void {
    budget.usedBytes += part.data.byteLength
    parts.push(part)
  }

  return {
    get length() {
      return length
    },
    cut,
    append(position, data) {
      cut(position)
      if (position > length) return
      add({ position, rows: data.length / hiddenSize, data })
      length = position + data.length / hiddenSize
      if (budget.usedBytes <= budget.limitBytes) return
      parts.forEach(release)
      parts = []
      length = 0
    },
    *runs(start, end, rowsMax) {
      for (let position = start; position < end; position += rowsMax) {
        if (length < end)
          throw new CrowdError('stage-lost', 'what was sent before is not kept here any more')
        const rows = Math.min(rowsMax, end - position)
        const data = new Float32Array(rows * hiddenSize)
        for (const part of parts) {
          const from = Math.max(part.position, position)
          const to = Math.min(part.position + part.rows, position + rows)
          if (from >= to) continue
          const taken = part.data.subarray(
            (from - part.position) * hiddenSize,
            (to - part.position) * hiddenSize,
          )
          data.set(taken, (from - position) * hiddenSize)
        }
        yield { position, rows, data }
      }
    },
  }
}
