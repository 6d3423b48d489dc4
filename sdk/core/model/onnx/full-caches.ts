import type { Graph } from '../../graph/graph.ts'

const WINDOWED = 'sliding_window_cache'

/**
 * Builds for small memory keep only the window of a layer with sliding attention, in a buffer that goes
 * round. Our caches keep every position, with which the window alone gives the same.
 */
export function withFullCaches(graph: Graph): Graph {
  return {
    ...graph,
    nodes: graph.nodes.map((node) => {
      if (node.op !== 'GroupQueryAttention') return node
      const kept = Object.entries(node.attributes).filter(([name]) => name !== WINDOWED)
      return { ...node, attributes: Object.fromEntries(kept) }
    }),
  }
}
