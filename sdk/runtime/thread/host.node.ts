/// The entry script of the compute thread: everything that touches ORT in a worker process lives here.
import { parentPort } from 'node:worker_threads'
import { createNodeStageRunner, type NodeOrtOptions } from '../ort.node.ts'
import type { ThreadRequest } from './messages.ts'
import { serveStageRunner } from './serve.ts'

if (parentPort === null) throw new Error('this script is the entry of a thread')
const owner = parentPort

serveStageRunner(
  {
    post(message, transfer) {
      owner.postMessage(message, transfer)
    },
    listen(listener) {
      // Only our own process holds the other end.
      owner.on('message', (message: ThreadRequest<NodeOrtOptions>) => listener(message))
    },
  },
  createNodeStageRunner,
)
