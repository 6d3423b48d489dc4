// The compute thread from its source: Node's own loader can't read TypeScript in a thread.
import { register } from 'tsx/esm/api'

register()
await import('../../sdk/runtime/thread/host.node.ts')
