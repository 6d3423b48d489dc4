import type { SessionId } from '../core/ids.ts'
import type { BlockRange } from '../core/model/block-range.ts'
import type { Manifest } from '../core/model/manifest.ts'
import { GREEDY } from '../core/sampling/params.ts'
import type { StageRunner, StageStep } from '../runtime/stage-runner.ts'

/** Cast: a number that no host gives to a session. */
const NOBODYS = 0 as SessionId

/** The first step compiles kernels and tells nothing; of the others the fastest was disturbed least. */
const MEASURED_STEPS = 3

/**
 * Runs single rows through a stage that was loaded: what can't compute is found before anybody waits for it, the
 * first answer needn't wait for the compiler, and the planner knows a device's speed before it served.
 * @returns ms of a decode step
 * @throws CrowdError as StageRunner.run, and when aborted
 */
export async function warmUp(
  runner: StageRunner,
  stage: { readonly manifest: Manifest; readonly range: BlockRange },
  signal: AbortSignal,
): Promise<number> {
  let fastest = Infinity
  try {
    await runner.run(someRow(stage))
    for (let step = 0; step < MEASURED_STEPS; step += 1) {
      signal.throwIfAborted()
      const { computeMs } = await runner.run(someRow(stage))
      fastest = Math.min(fastest, computeMs)
    }
  } finally {
    await runner.release(NOBODYS)
  }
  return fastest
}

function someRow(stage: { readonly manifest: Manifest; readonly range: BlockRange }): StageStep {
  const { blocks, hiddenSize } = stage.manifest
  const { start, end } = stage.range
  const input: StageStep['input'] =
    start === 0
      ? { kind: 'tokens', ids: Int32Array.of(0) }
      : { kind: 'hidden', data: new Float32Array(hiddenSize) }
  const sample =
    end === blocks.length ? { params: GREEDY, history: new Int32Array(), promptLength: 0 } : null
  return { session: NOBODYS, position: 0, input, sample }
}
