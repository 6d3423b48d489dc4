import { string } from '../graph/graph.ts'
import type { GraphBuilder } from '../model/graph-builder.ts'
import type { Activation, GatedSpec } from './decoder.ts'

/** down(activation(gate(x)) × up(x)) (Shazeer 2020). */
export function addGated(
  builder: GraphBuilder,
  name: string,
  input: string,
  { gate, up, down, activation }: GatedSpec,
): string {
  const gates = builder.linear(`${name}/gate_proj/MatMul`, input, gate)
  const inner = builder.linear(`${name}/up_proj/MatMul`, input, up)
  const active = addActivation(builder, name, gates, activation)
  const gated = builder.node('Mul', `${name}/Mul`, [active, inner])
  return builder.linear(`${name}/down_proj/MatMul`, gated, down)
}

export function addActivation(
  { node }: GraphBuilder,
  name: string,
  input: string,
  activation: Activation,
): string {
  switch (activation) {
    case 'silu': {
      const sigmoid = node('Sigmoid', `${name}/act_fn/Sigmoid`, [input])
      return node('Mul', `${name}/act_fn/Mul`, [input, sigmoid])
    }
    case 'relu':
      return node('Relu', `${name}/act_fn/Relu`, [input])
    case 'gelu':
      return node('Gelu', `${name}/act_fn/Gelu`, [input])
    case 'gelu-tanh':
      return node('Gelu', `${name}/act_fn/Gelu`, [input], {
        attributes: { approximate: string('tanh') },
      })
  }
}
