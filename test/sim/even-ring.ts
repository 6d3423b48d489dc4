import { GREEDY } from '../../sdk/core/sampling/params.ts'
import { modelOf } from '../support/host-fixtures.ts'
import { createSimSwarm, type SimOptions, type SimSwarm } from './sim-swarm.ts'
import type { Question } from './unsplit.ts'

export type RingSetting = {
  readonly stages: number
  /** Devices for each stage. */
  readonly copies: number
  /** What one decode step of one stage takes, ms. */
  readonly stepMs: number
  /** From one stage to the next, ms. */
  readonly hopMs: number
  /** As in the options of a device. */
  readonly replayBytes?: number
}

/**
 * As measured for three tabs and the 76 M parameters of `npm run bench` (README, "Measured"): 55 ms of compute in
 * three stages, 2.6 ms for a hop.
 */
export const MEASURED: RingSetting = { stages: 3, copies: 1, stepMs: 55.1 / 3, hopMs: 2.6 }

/** A chunk of 32 rows takes about four times as long as one row: products of matrices use a core better. */
const ROW_SHARE = 0.1

/** A ring of equal devices, whole, and somebody who asks. Its model never ends an answer by itself. */
export async function openEvenRing(
  setting: RingSetting,
  seed: number,
  beforeStep?: SimOptions['beforeStep'],
): Promise<SimSwarm> {
  const { stages, copies, stepMs, hopMs, replayBytes } = setting
  const sim = await createSimSwarm({
    seed,
    manifest: { ...modelOf({ layers: 6, contextLength: 512 }), eosTokenIds: [] },
    minStages: stages,
    weather: { latencyMs: hopMs, jitterMs: 0, bytesPerMs: 0 },
    hostMs: { latency: hopMs, jitter: 0 },
    ...(beforeStep === undefined ? {} : { beforeStep }),
  })
  for (let device = 0; device < stages * copies; device += 1)
    sim.join({
      pledgeBytes: 1e9,
      stepMs: (rows) => stepMs * (1 + ROW_SHARE * (rows - 1)),
      ...(replayBytes === undefined ? {} : { replayBytes }),
    })
  return sim
}

export function shortQuestion(number: number, maxTokens: number): Question {
  const prompt = [5, 6, 7, 8, 9, 10, 11, 3 + (number % 90)]
  return { prompt, maxTokens, sampling: GREEDY }
}
