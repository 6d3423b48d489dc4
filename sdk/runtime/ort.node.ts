import { availableParallelism } from 'node:os'
import { CrowdError } from '../core/errors.ts'
import type { Ort, OrtBackend } from './ort-backend.ts'
import { createOrtQueue } from './ort-queue.ts'
import { createOrtStageRunner } from './ort-stage-runner.ts'
import { selfTest } from './self-test.ts'
import type { StageRunner } from './stage-runner.ts'

export type NodeStageRunnerOptions = {
  /** Threads inside one operator; ORT's own choice (all cores) when absent. */
  readonly threads?: number
}

/**
 * The StageRunner port on onnxruntime-node's CPU provider, in this thread: `run` blocks it while it
 * computes.
 */
export function createNodeStageRunner(options: NodeStageRunnerOptions = {}): StageRunner {
  const { threads } = options
  return createOrtStageRunner({
    candidates: [{ name: 'cpu', open: () => openCpu(threads) }],
    queue: createOrtQueue(),
    selfTest,
  })
}

async function openCpu(threads: number | undefined): Promise<OrtBackend> {
  let ort: Ort
  try {
    ort = await import('onnxruntime-node')
  } catch (thrown) {
    const message = thrown instanceof Error ? thrown.message : String(thrown)
    throw new CrowdError('provider-unavailable', `onnxruntime-node does not load: ${message}`, {
      cause: thrown,
    })
  }
  return {
    ort,
    report: { provider: 'cpu', threads: threads ?? availableParallelism(), notes: [] },
    sessionOptions: {
      executionProviders: ['cpu'],
      logSeverityLevel: 3,
      // Each block has a session with threads of its own: waiting ones that spin fight for the cores.
      extra: { session: { intra_op: { allow_spinning: '0' } } },
      ...(threads === undefined ? {} : { intraOpNumThreads: threads }),
    },
    device: null,
    failure: () => null,
    close: () => undefined,
  }
}
