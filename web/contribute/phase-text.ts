import { describeRange } from '../../sdk/core/model/block-range.ts'
import type { WorkerSnapshot } from '../../sdk/worker/worker-snapshot.ts'

type Phase = WorkerSnapshot['phase']

const PHASE_TITLES: Record<Phase, string> = {
  idle: 'Starting…',
  testing: 'Testing what this device can compute…',
  connecting: 'Connecting to the host…',
  waiting: 'Spare: waiting for layers',
  fetching: 'Downloading the layers…',
  loading: 'Loading the layers…',
  serving: 'Serving',
  paused: 'Paused',
  left: 'This device has left',
  failed: 'This device cannot serve',
}

/** `layers 4–6 and head of crowdtalk-2.6m`; empty while nothing is held. */
export function describeHolding(snapshot: WorkerSnapshot): string {
  const { range, layerCount, model } = snapshot
  if (range === null || layerCount === null) return ''
  const layers = describeRange(range, layerCount)
  return model === null ? layers : `${layers} of ${model}`
}

/** `WebGPU`, `WASM, 4 threads`. */
export function describeRunner(runner: NonNullable<WorkerSnapshot['runner']>): string {
  const names = { webgpu: 'WebGPU', wasm: 'WASM', cpu: 'CPU', cuda: 'CUDA' } as const
  const name = names[runner.provider]
  if (runner.provider === 'webgpu' || runner.provider === 'cuda') return name
  return `${name}, ${runner.threads} thread${runner.threads === 1 ? '' : 's'}`
}

/** While answers still run here that other devices go on with, or that end here, the title says so. */
export function describePhase(
  phase: Phase,
  { leaving, sessions }: { leaving: boolean; sessions: number },
): string {
  const isHandingOver = sessions > 0 && (leaving || phase === 'paused')
  const what = isHandingOver ? `: handing over ${sessions} answer${sessions === 1 ? '' : 's'}…` : ''
  if (leaving) return `Leaving${what || '…'}`
  return `${PHASE_TITLES[phase]}${what}`
}
