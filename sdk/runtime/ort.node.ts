import { availableParallelism } from 'node:os'
import type * as common from 'onnxruntime-common'
import { CrowdError, toCrowdError } from '../core/errors.ts'
import type { Provider } from '../core/model/provider.ts'
import type { BackendCandidate, OrtBackend } from './ort-backend.ts'
import { createOrtQueue } from './ort-queue.ts'
import { createOrtStageRunner } from './ort-stage-runner.ts'
import { selfTest } from './self-test.ts'
import { silenceOrt } from './silent-ort.node.ts'
import type { StageEngine } from './stage-engine.ts'
import type { StageRunner } from './stage-runner.ts'

export type NodeProvider = Exclude<Provider, 'wasm'>

export type NodeOrtOptions = {
  /** The provider to try before the CPU; `auto`: CUDA, then WebGPU. Default: the CPU alone. */
  readonly prefer?: 'auto' | NodeProvider
  /** Fail where no GPU passes the self-test. Operators that its provider lacks are put on the CPU by the runtime even so. */
  readonly requireGpu?: boolean
  /** Threads inside one operator on the CPU; all cores when absent. */
  readonly threads?: number
}

/**
 * The StageRunner port on onnxruntime-node, in this thread: `run` blocks it while it computes. What serves
 * others while it computes takes createNodeThreadRunner instead.
 */
export function createNodeStageRunner(options: NodeOrtOptions = {}): StageRunner {
  return createOrtStageRunner({
    candidates: nodeCandidates(options),
    queue: createOrtQueue(),
    selfTest: testReadably,
  })
}

/** @throws CrowdError as the self-test, in words without the runtime's source lines */
async function testReadably(engine: StageEngine): Promise<void> {
  try {
    await selfTest(engine)
  } catch (thrown) {
    const { code, message } = toCrowdError(thrown, 'provider-unavailable')
    throw new CrowdError(code, readable(message), { cause: thrown })
  }
}

/** @example readable('…/webgpu_context.cc:136 … was false. No adapter\n') // 'No adapter' */
function readable(message: string): string {
  const bare = message
    .replace(/^a block could not be loaded: /, '')
    .replace(/^.*\/onnxruntime_src\/.* was (?:true|false)\. /s, '')
    .replace(/\s+/g, ' ')
    .trim()
  return bare.includes('Provider_Cuda: Failed to load')
    ? `ONNX Runtime's CUDA library is not installed (${bare})`
    : bare
}

/** The providers of this machine, best first. Nothing is loaded before one is opened. */
export function nodeCandidates(options: NodeOrtOptions): BackendCandidate[] {
  const { prefer = 'cpu', requireGpu = false } = options
  const gpus: NodeProvider[] = prefer === 'auto' ? ['cuda', 'webgpu'] : [prefer]
  const wanted = requireGpu ? gpus : [...new Set<NodeProvider>([...gpus, 'cpu'])]
  return wanted.map((name) => ({ name, open: () => open(name, options.threads) }))
}

async function open(provider: NodeProvider, threads: number | undefined): Promise<OrtBackend> {
  const ort = await load()
  // What the self-test finds out is told in our words; the library would write to the terminal first.
  ort.env.logLevel = 'fatal'
  return {
    ort,
    report: {
      provider,
      threads: provider === 'cpu' ? (threads ?? availableParallelism()) : 1,
      notes: [],
    },
    sessionOptions: {
      executionProviders: [provider],
      logSeverityLevel: 4,
      // Each block has a session with threads of its own: waiting ones that spin fight for the cores.
      extra: { session: { intra_op: { allow_spinning: '0' } } },
      ...(provider === 'cpu' && threads !== undefined ? { intraOpNumThreads: threads } : {}),
    },
    // A tensor in a GPU's buffer can't be read in Node (it ends the process), so caches are kept outside.
    device: null,
    failure: () => null,
    close: () => undefined,
  }
}

/** @throws CrowdError provider-unavailable where this machine has no binary */
async function load(): Promise<typeof common> {
  silenceOrt()
  try {
    return await import('onnxruntime-node')
  } catch (thrown) {
    const { message } = toCrowdError(thrown)
    throw new CrowdError('provider-unavailable', `onnxruntime-node does not load: ${message}`, {
      cause: thrown,
    })
  }
}
