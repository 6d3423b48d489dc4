import { Worker } from 'node:worker_threads'
import type { CrowdError } from '../../core/errors.ts'
import type { NodeOrtOptions } from '../ort.node.ts'
import { silenceOrt } from '../silent-ort.node.ts'
import type { StageRunner } from '../stage-runner.ts'
import type { ThreadReply } from './messages.ts'
import { createThreadStageRunner, type Thread } from './proxy.ts'

export type NodeThreadDeps = {
  /** The script of the thread; the built one beside this file by default. Tests run the sources. */
  readonly script?: URL
  /** The thread was killed (hung, crashed); everything in it is gone until the next `start`. */
  readonly onKilled?: (error: CrowdError) => void
  /** A thread was made; `ended` resolves when nothing of it runs any more. */
  readonly onThread?: (ended: Promise<void>) => void
}

/**
 * The StageRunner port of a Node process that also has to answer its peers: ONNX Runtime blocks whoever
 * calls it, so it has a thread of its own.
 *
 *     const runner = createNodeThreadRunner({ prefer: 'auto' })
 *     const { provider } = await runner.start()
 */
export function createNodeThreadRunner(
  options: NodeOrtOptions,
  deps: NodeThreadDeps = {},
): StageRunner {
  const { onKilled, onThread, script = new URL('./host.node.js', import.meta.url) } = deps
  return createThreadStageRunner(
    { spawn: () => spawnThread(script, onThread), ...(onKilled === undefined ? {} : { onKilled }) },
    options,
  )
}

function spawnThread(script: URL, onThread: NodeThreadDeps['onThread']): Thread<NodeOrtOptions> {
  silenceOrt()
  const thread = new Worker(script, { name: 'crowdinfer-stage' })
  onThread?.(new Promise((resolve) => thread.once('exit', () => resolve())))
  return {
    post(message, transfer) {
      thread.postMessage(message, transfer)
    },
    listen(listener) {
      // Only our own script holds the other end.
      thread.on('message', (reply: ThreadReply) => listener(reply))
    },
    onCrash(listener) {
      thread.on('error', ({ message }) => listener(message))
      thread.on('exit', (code) => listener(`it ended with code ${code}`))
      thread.on('messageerror', () => listener('a message could not be read'))
    },
    kill() {
      // Where the runtime hangs in native code this never settles; nobody waits for it.
      void thread.terminate()
    },
  }
}
