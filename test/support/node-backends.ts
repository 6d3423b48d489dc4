import * as cpu from 'onnxruntime-node'
import * as wasm from 'onnxruntime-web'
import type { OrtBackend } from '../../sdk/runtime/ort-backend.ts'

/** The providers that every machine has, one thread each: these tests share their cores. */
export function testBackend(provider: 'cpu' | 'wasm'): OrtBackend {
  wasm.env.wasm.numThreads = 1
  return {
    ort: provider === 'cpu' ? cpu : wasm,
    report: { provider, threads: 1, notes: [] },
    sessionOptions: {
      executionProviders: [provider],
      intraOpNumThreads: 1,
      logSeverityLevel: 3,
    },
    device: null,
    failure: () => null,
    close: () => undefined,
  }
}
