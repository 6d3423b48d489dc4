import webgpuMjsUrl from 'onnxruntime-web/ort-wasm-simd-threaded.asyncify.mjs?url'
import webgpuWasmUrl from 'onnxruntime-web/ort-wasm-simd-threaded.asyncify.wasm?url'
import wasmMjsUrl from 'onnxruntime-web/ort-wasm-simd-threaded.mjs?url'
import wasmWasmUrl from 'onnxruntime-web/ort-wasm-simd-threaded.wasm?url'
import { openGpu } from './gpu-device.browser.ts'
import type { BackendCandidate, OrtBackend } from './ort-backend.ts'

/** Which provider is tried first. `auto` passes a software GPU over; `webgpu` takes it. */
export type ProviderPreference = 'auto' | 'webgpu' | 'wasm'

export type BrowserOrtOptions = {
  readonly prefer: ProviderPreference
  /** WASM threads where the page is isolated; a core is left to the page when absent. */
  readonly threads?: number
}

const THREADS_MAX = 4

/**
 * The providers of this realm, best first. Nothing is loaded before one is opened. Not the default entry of
 * onnxruntime-web: its WebGPU gives wrong results without an error.
 */
export function browserCandidates(options: BrowserOrtOptions): BackendCandidate[] {
  const threads = crossOriginIsolated ? Math.max(1, options.threads ?? defaultThreads()) : 1
  const wasm = { name: 'wasm', open: () => openWasm(threads) }
  if (options.prefer === 'wasm') return [wasm]
  const allowSoftware = options.prefer === 'webgpu'
  return [{ name: 'webgpu', open: () => openWebGpu(allowSoftware) }, wasm]
}

function defaultThreads(): number {
  return Math.min(THREADS_MAX, navigator.hardwareConcurrency - 1)
}

async function openWasm(threads: number): Promise<OrtBackend> {
  const ort = await import('onnxruntime-web/wasm')
  ort.env.wasm.wasmPaths = { wasm: wasmWasmUrl, mjs: wasmMjsUrl }
  ort.env.wasm.numThreads = threads
  const note = crossOriginIsolated ? [] : ['one thread only: the page is not isolated']
  return {
    ort,
    report: { provider: 'wasm', threads, notes: note },
    sessionOptions: { executionProviders: ['wasm'], logSeverityLevel: 3 },
    device: null,
    failure: () => null,
    close: () => undefined,
  }
}

async function openWebGpu(allowSoftware: boolean): Promise<OrtBackend> {
  const { device, label, isSoftware } = await openGpu({ allowSoftware })
  let failure: string | null = null
  let isClosed = false
  const fail = (reason: string): void => {
    if (!isClosed) failure ??= reason
  }
  void device.lost.then(({ message }) => {
    fail(`the GPU device was lost: ${message}`)
  })
  // An uncaptured error leaves buffers with rubbish and no exception.
  device.addEventListener('uncapturederror', ({ error }) => {
    fail(`the GPU reported: ${error.message}`)
  })
  const ort = await import('onnxruntime-web/webgpu')
  ort.env.wasm.wasmPaths = { wasm: webgpuWasmUrl, mjs: webgpuMjsUrl }
  ort.env.wasm.numThreads = 1
  return {
    ort,
    report: {
      provider: 'webgpu',
      threads: 1,
      notes: isSoftware ? [`software GPU (${label})`] : [],
    },
    sessionOptions: { executionProviders: [{ name: 'webgpu', device }], logSeverityLevel: 3 },
    device,
    failure: () => failure,
    close() {
      isClosed = true
      failure ??= 'the runner is closed'
      device.destroy()
    },
  }
}
