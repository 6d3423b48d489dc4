import type * as common from 'onnxruntime-common'
import type { RunnerReport } from './stage-runner.ts'

/** The part of the ONNX Runtime module that is used; the same in onnxruntime-web and onnxruntime-node. */
export type Ort = Pick<typeof common, 'InferenceSession' | 'Tensor'>

/** An opened provider: what a stage needs to make and run sessions on it. */
export type OrtBackend = {
  readonly ort: Ort
  readonly report: RunnerReport
  /** Provider, threads, log level: what is the same for every session. */
  readonly sessionOptions: common.InferenceSession.SessionOptions
  /** Our own device where a page's provider is WebGPU; caches then live in its buffers. */
  readonly device: GPUDevice | null
  /** Why nothing can run any more (device lost), or null. */
  failure(): string | null
  close(): void
}

/** One provider worth trying, best first. `open` rejects where the device doesn't have it. */
export type BackendCandidate = {
  readonly name: string
  open(): Promise<OrtBackend>
}
