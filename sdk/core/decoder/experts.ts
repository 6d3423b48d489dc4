import { int, string } from '../graph/graph.ts'
import type { GraphBuilder } from '../model/graph-builder.ts'
import type { FeedForwardSpec, Projection } from './decoder.ts'
import { addGated } from './gated.ts'

/**
 * Experts, each of which computes only the rows that the router sends to it: the rows are gathered, go through
 * the expert's matrices, and are added back with their weight. An expert that nobody chose gets no rows.
 */
export function addExperts(
  builder: GraphBuilder,
  name: string,
  input: string,
  spec: FeedForwardSpec & { kind: 'experts' },
): string {
  const { node, constant } = builder
  const { router, experts } = spec
  const hidden = router.matrix.columns
  const flat = constant('experts.rows', 'i64', [2], BigInt64Array.of(-1n, BigInt(hidden)))
  const rows = node('Reshape', `${name}/Reshape`, [input, flat])
  const weights = addRouting(builder, name, rows, spec)
  const axis = constant('const.axis_1', 'i64', [1], BigInt64Array.of(1n))
  const column = constant('experts.column', 'i64', [1], BigInt64Array.of(-1n))
  const zero = constant('experts.zero', 'f32', [], Float32Array.of(0))
  let sum = node('Mul', `${name}/zeros`, [rows, zero])
  experts.forEach((expert, e) => {
    const part = `${name}/experts.${e}`
    const index = constant(`experts.${e}`, 'i64', [], BigInt64Array.of(BigInt(e)))
    const share = node('Gather', `${part}/share`, [weights, index], {
      attributes: { axis: int(1) },
    })
    const found = node('NonZero', `${part}/NonZero`, [share])
    const chosen = node('Reshape', `${part}/rows`, [found, column])
    const taken = node('Gather', `${part}/Gather`, [rows, chosen])
    const computed = addGated(builder, part, taken, expert)
    const shares = node('Gather', `${part}/shares`, [share, chosen])
    const scale = node('Unsqueeze', `${part}/scale`, [shares, axis])
    const scaled = node('Mul', `${part}/scaled`, [computed, scale])
    const places = node('Unsqueeze', `${part}/places`, [chosen, axis])
    sum = node('ScatterND', `${part}/ScatterND`, [sum, places, scaled], {
      attributes: { reduction: string('add') },
    })
  })
  const back = constant('experts.back', 'i64', [3], BigInt64Array.of(1n, -1n, BigInt(hidden)))
  return node('Reshape', `${name}/Reshape_back`, [sum, back])
}

/** f32 [S, experts]: the weight of each expert for each row, zero where it isn't chosen. */
function addRouting(
  builder: GraphBuilder,
  name: string,
  rows: string,
  spec: FeedForwardSpec & { kind: 'experts' },
): string {
  const { node, constant } = builder
  const { top, normalise, router, experts } = spec
  const logits = addRouter(builder, `${name}/router`, rows, router)
  const shares = node('Softmax', `${name}/router/Softmax`, [logits], {
    attributes: { axis: int(-1) },
  })
  const k = constant('experts.top', 'i64', [1], BigInt64Array.of(BigInt(top)))
  const best = `${name}/router/TopK/output_0`
  const places = `${name}/router/TopK/output_1`
  node('TopK', `${name}/router/TopK`, [shares, k], {
    attributes: { axis: int(-1) },
    outputs: [best, places],
  })
  let kept = best
  if (normalise) {
    const axis = constant('experts.last', 'i64', [1], BigInt64Array.of(-1n))
    const total = node('ReduceSum', `${name}/router/ReduceSum`, [best, axis])
    kept = node('Div', `${name}/router/Div`, [best, total])
  }
  const count = constant('experts.count', 'i64', [], BigInt64Array.of(BigInt(experts.length)))
  const off = constant('experts.off_on', 'f32', [2], Float32Array.of(0, 1))
  // One row of 0 and 1 per choice, times its weight, summed over the choices.
  const chosen = node('OneHot', `${name}/router/OneHot`, [places, count, off])
  const last = constant('experts.last', 'i64', [1], BigInt64Array.of(-1n))
  const weights = node('Unsqueeze', `${name}/router/Unsqueeze`, [kept, last])
  const weighted = node('Mul', `${name}/router/Mul`, [chosen, weights])
  const axis = constant('const.axis_1', 'i64', [1], BigInt64Array.of(1n))
  return node('ReduceSum', `${name}/router/weights`, [weighted, axis], {
    attributes: { keepdims: int(0) },
  })
}

/** Never quantised: a router is small, and a wrong choice of expert is worse than a rounded value. */
function addRouter(
  { node, weight }: GraphBuilder,
  name: string,
  rows: string,
  { matrix }: Projection,
): string {
  const recipe = { ...matrix, plus: 0, form: 'transposed', type: 'f32' } as const
  const stored = weight(`${name}.weight`, [matrix.columns, matrix.rows], recipe)
  return node('MatMul', `${name}/MatMul`, [rows, stored])
}
