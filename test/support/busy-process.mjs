// Ends itself by the signal of its argument while a thread of it is in native code, which nothing interrupts.
import { Worker } from 'node:worker_threads'
import { register } from 'tsx/esm/api'

register()
const { endBySignal } = await import('../../sdk/crowd-worker/end-process.node.ts')
const signal = process.argv[2]
process.on(signal === 'SIGKILL' ? 'SIGUSR2' : signal, () => undefined)
const busy = `
  require('node:worker_threads').parentPort.postMessage('busy')
  require('node:crypto').pbkdf2Sync('a', 'b', 2 ** 31 - 1, 64, 'sha512')
`
new Worker(busy, { eval: true }).once('message', () => {
  process.stdout.write('the last line\n')
  void endBySignal(signal, 1)
})
