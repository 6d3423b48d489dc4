import { producers, type Graph, type GraphNode } from '../graph/graph.ts'

/** Inputs of GroupQueryAttention, the optional ones behind the rotary tables. */
const HEAD_SINK = 11

/**
 * Names the nodes that WebGPU would compute wrong or too roughly, without an error, so that they're left to the CPU:
 * attention with a soft cap or sinks, which its kernel passes over; quantised mixtures; and cosines and sines of positions, which shaders may
 * give with an error of 2^-11, and of large angles with any. What these are made of comes along, up to shapes, so that
 * nothing has to come back from the GPU for them.
 */
export function nameCpuNodes(graph: Graph): {
  readonly graph: Graph
  readonly names: readonly string[]
} {
  const makers = producers(graph.nodes)
  const chosen = new Set<GraphNode>()
  for (const node of graph.nodes) {
    if (isUncappedOnGpu(node) || node.op === 'QMoE') chosen.add(node)
    if (node.op === 'Cos' || node.op === 'Sin') takeWithOrigin(node, makers, chosen)
  }
  const names: string[] = []
  const nodes = graph.nodes.map((node) => {
    if (!chosen.has(node)) return node
    // Exporters' names may be missing or not be unique.
    const name = `on.cpu.${names.length}`
    names.push(name)
    return { ...node, name }
  })
  return { graph: { ...graph, nodes }, names }
}

/** Attention that WebGPU would compute as if its logits had no soft cap and no sinks. */
export function isUncappedOnGpu({ op, attributes, inputs }: GraphNode): boolean {
  if (op !== 'GroupQueryAttention') return false
  const { softcap, smooth_softmax: smooth } = attributes
  return (
    (softcap?.kind === 'float' && softcap.value !== 0) ||
    (smooth?.kind === 'int' && smooth.value !== 0) ||
    Boolean(inputs[HEAD_SINK])
  )
}

function takeWithOrigin(
  node: GraphNode,
  makers: ReadonlyMap<string, GraphNode>,
  chosen: Set<GraphNode>,
): void {
  const waiting = [node]
  for (let next = waiting.pop(); next !== undefined; next = waiting.pop()) {
    if (chosen.has(next) || next.op === 'Shape') continue
    chosen.add(next)
    waiting.push(...next.inputs.flatMap((input) => makers.get(input) ?? []))
  }
}
