import { CrowdError } from '../core/errors.ts'

export type OrtQueue = {
  /**
   * Runs `job` once all earlier ones have settled, whatever became of them. The limit counts from the
   * job's own start.
   * @throws what the job throws; CrowdError timeout when it does not settle in time; CrowdError
   * stage-failed while an earlier job that timed out still hangs
   */
  run<T>(what: string, limitMs: number, job: () => Promise<T>): Promise<T>
}

/**
 * The one queue round every ORT call of a realm: overlapping WebGPU calls corrupt its memory or hang for
 * ever. A job that outlives its limit is given up, but nothing new starts beside it: until it settles,
 * further jobs are refused at once, and the owner may kill the thread.
 */
export function createOrtQueue(): OrtQueue {
  let tail: Promise<unknown> = Promise.resolve()
  let hanging: string | null = null

  async function guarded<T>(what: string, limitMs: number, job: () => Promise<T>): Promise<T> {
    if (hanging !== null) {
      throw new CrowdError('stage-failed', `${what}: the runtime still hangs in ${hanging}`)
    }
    // Through then(), so that a job that throws at once is a rejected one.
    const working = Promise.resolve().then(job)
    let timer: ReturnType<typeof setTimeout> | undefined
    const limit = new Promise<never>((_, reject) => {
      timer = setTimeout(() => {
        hanging = what
        const settled = (): void => {
          hanging = null
        }
        working.then(settled, settled)
        reject(new CrowdError('timeout', `${what} took longer than ${limitMs} ms`))
      }, limitMs)
    })
    try {
      return await Promise.race([working, limit])
    } finally {
      clearTimeout(timer)
    }
  }

  return {
    run(what, limitMs, job) {
      const result = tail.then(() => guarded(what, limitMs, job))
      tail = result.catch(() => undefined)
      return result
    },
  }
}
