import { toCrowdError } from '../../core/errors.ts'
import type { StageOutput, StageRunner } from '../stage-runner.ts'
import { transferable, type ThreadPort, type ThreadReply, type ThreadRequest } from './messages.ts'

/**
 * Answers the owner's requests with a runner that is made at the first start. Requests may overlap; the
 * runner queues them.
 */
export function serveStageRunner<Options>(
  port: ThreadPort<ThreadReply, ThreadRequest<Options>>,
  makeRunner: (options: Options) => StageRunner,
): void {
  let runner: StageRunner | null = null

  async function answer(request: ThreadRequest<Options>): Promise<ThreadReply> {
    const { id } = request
    if (request.kind === 'start') {
      runner ??= makeRunner(request.options)
      return { id, kind: 'started', report: await runner.start() }
    }
    if (runner === null) throw new Error('the compute thread is not started')
    switch (request.kind) {
      case 'set-stage':
        return {
          id,
          kind: 'stage-set',
          wanted: await runner.setStage(request.manifest, request.range),
        }
      case 'load-block':
        await runner.loadBlock(request.block, request.bytes)
        return { id, kind: 'done' }
      case 'run':
        return { id, kind: 'ran', output: await runner.run(request.step) }
      case 'release':
        await runner.release(request.session)
        return { id, kind: 'done' }
      case 'close':
        await runner.close()
        return { id, kind: 'done' }
    }
  }

  async function serve(request: ThreadRequest<Options>): Promise<void> {
    try {
      const reply = await answer(request)
      if (reply.kind !== 'ran') port.post(reply, [])
      else {
        const { output, transfer } = withTransfer(reply.output)
        port.post({ ...reply, output }, transfer)
      }
    } catch (thrown) {
      const error = toCrowdError(thrown, 'stage-failed').toWire()
      port.post({ id: request.id, kind: 'failed', error }, [])
    }
  }

  port.listen((request) => {
    void serve(request)
  })
}

function withTransfer(output: StageOutput): { output: StageOutput; transfer: ArrayBuffer[] } {
  if (output.kind !== 'hidden') return { output, transfer: [] }
  const { view, buffer } = transferable(output.data)
  return { output: { ...output, data: view }, transfer: [buffer] }
}
