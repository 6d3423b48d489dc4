import type { GraphBuilder } from '../model/graph-builder.ts'
import type { FeedForwardSpec } from './decoder.ts'
import { addExperts } from './experts.ts'
import { addActivation, addGated } from './gated.ts'

/** What the second half of a layer adds to the stream, [.., H]. `name` is that of the layer's part. */
export function addFeedForward(
  builder: GraphBuilder,
  name: string,
  input: string,
  spec: FeedForwardSpec,
): string {
  switch (spec.kind) {
    case 'gated':
      return addGated(builder, name, input, spec)
    case 'plain': {
      const inner = builder.linear(`${name}/up_proj/MatMul`, input, spec.up)
      const active = addActivation(builder, name, inner, spec.activation)
      return builder.linear(`${name}/down_proj/MatMul`, active, spec.down)
    }
    case 'experts':
      return addExperts(builder, name, input, spec)
  }
}
