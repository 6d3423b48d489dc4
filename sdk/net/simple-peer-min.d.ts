// The pre-bundled build has no types of its own; it is the same class.
declare module 'simple-peer/simplepeer.min.js' {
  import type { Instance, Options } from 'simple-peer'
  const SimplePeer: new (options: Options) => Instance
  export default SimplePeer
}
