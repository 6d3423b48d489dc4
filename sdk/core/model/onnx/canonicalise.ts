import type { Graph } from '../../graph/graph.ts'
import { withFullCaches } from './full-caches.ts'
import { joinQuantizedLookup } from './quantized-lookup.ts'
import { quantizeRows } from './quantize-rows.ts'
import { tidyGraph } from './tidy-graph.ts'
import { foldTransposes } from './transposed-weights.ts'
import { unfuseQkNorms } from './unfuse-qk-norms.ts'
import { widenHalves } from './widen-halves.ts'

/** A graph in canonical form, and which of its constants aren't in the file as it has them. */
export type CanonicalGraph = {
  readonly graph: Graph
  /** [columns, rows] in the file. */
  readonly transposed: ReadonlySet<string>
  /** Signed bytes in the file; unsigned ones, 128 more, in the graph. */
  readonly shifted: ReadonlySet<string>
}

/**
 * Brings an exporter's graph to what the partitioner cuts: constants as initialisers, f32 activations, no
 * operator form that a CPU lacks.
 */
export function canonicalise(source: Graph, headSize: number): CanonicalGraph {
  const { graph: folded, transposed } = foldTransposes(tidyGraph(source))
  const { graph: joined, shifted } = joinQuantizedLookup(folded)
  return {
    graph: widenHalves(unfuseQkNorms(withFullCaches(quantizeRows(joined)), headSize)),
    transposed,
    shifted,
  }
}
