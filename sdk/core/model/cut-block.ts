import { CrowdError } from '../errors.ts'
import { pruned, type Graph, type GraphNode } from '../graph/graph.ts'
import { describeNode } from './dialect.ts'
import { idNames } from './embedding-lookup.ts'
import { LOCAL, localValues } from './local-values.ts'
import { readsShapeOnly, shapedLike, tokenValues } from './token-path.ts'

/** A graph whose borders are known. */
export type Cuttable = {
  readonly graph: Graph
  /** Before each layer, then before the head. */
  readonly borders: readonly string[]
}

/** One block between two borders. `layer`: the number in the names of its caches; null: the head. */
export type BlockCut = {
  readonly from: string
  readonly layer: number | null
  /** Values of the whole graph that are inputs or outputs of the block, with their names there. */
  readonly renames: ReadonlyMap<string, string>
}

/** Inputs of whole graphs that a block makes by itself. */
const GRAPH_INPUTS: ReadonlyMap<string, string> = new Map([
  ['attention_mask', LOCAL.mask],
  ['position_ids', LOCAL.positions],
  ['logits_to_keep', LOCAL.allLogits],
  ['num_logits_to_keep', LOCAL.allLogits],
])
const PAST = /^past_key_values\.(\d+)\.(key|value)$/

/**
 * Takes the part of the graph between `cut.from` and the outputs in `rest`. What depends only on how many
 * tokens there are is copied into the block; shapes of tensors outside it are read off its own.
 * @throws CrowdError model-unsupported where the block needs more than its inputs (operator and node named)
 */
export function cutBlock(
  { graph, borders }: Cuttable,
  cut: BlockCut,
  rest: Pick<Graph, 'name' | 'inputs' | 'outputs'>,
): Graph {
  const { layer, from } = cut
  const dependent = tokenValues(graph)
  const ids = idNames(graph)
  const likeHidden = shapedLike(graph, borders)
  const place = graph.nodes.findIndex((node) => node.outputs.includes(from))
  const refuse = (node: GraphNode, what: string): CrowdError =>
    new CrowdError('model-unsupported', `${describeNode(node)} in ${rest.name} ${what}.`)

  function ownCache(node: GraphNode, input: string): string {
    const [, number, part] = PAST.exec(input) ?? []
    const isShape = readsShapeOnly(node)
    if (layer === null || (!isShape && Number(number) !== layer)) {
      throw refuse(node, `reads the cache of layer ${number ?? ''}`)
    }
    // The attention node takes a buffer that is longer than what is true of it.
    if (node.op === 'GroupQueryAttention') return `past.${part ?? ''}`
    return part === 'key' ? LOCAL.pastKey : LOCAL.pastValue
  }

  /** What only a shape is wanted of may lie outside the block. */
  function resolveShape(input: string): string {
    if (ids.has(input)) return LOCAL.ids
    return likeHidden.has(input) ? 'hidden' : input
  }

  function resolve(node: GraphNode, input: string): string {
    const renamed = cut.renames.get(input)
    if (input === '' || renamed !== undefined) return renamed ?? ''
    if (PAST.test(input)) return ownCache(node, input)
    const local = GRAPH_INPUTS.get(input)
    if (local === LOCAL.allLogits) return local
    if (local !== undefined) {
      if (layer === null) throw refuse(node, `reads ${input}`)
      return local
    }
    if (readsShapeOnly(node)) return resolveShape(input)
    if (input === 'input_ids') throw refuse(node, 'reads the token ids')
    return input
  }

  const inputNames = new Set(rest.inputs.map(({ name }) => name))
  const needed = new Set(rest.outputs.map(({ name }) => name))
  const nodes: GraphNode[] = []
  for (const [index, node] of [...graph.nodes.entries()].reverse()) {
    const outputs = node.outputs.map((output) => cut.renames.get(output) ?? output)
    // What makes an input of the block lies before the border.
    if (outputs.some((output) => inputNames.has(output))) continue
    if (!outputs.some((output) => output !== '' && needed.has(output))) continue
    const dependsOnTokens = node.outputs.some((output) => dependent.has(output))
    if (dependsOnTokens && index < place) {
      throw refuse(node, 'reads the token ids past the border')
    }
    const inputs = node.inputs.map((input) => resolve(node, input))
    for (const input of inputs) needed.add(input)
    nodes.push({ ...node, inputs, outputs })
  }
  const local = localValues(localTypes(graph), layer !== null)
  const block = pruned({
    ...graph,
    ...rest,
    nodes: [...local.nodes, ...nodes.reverse()],
    initializers: [...graph.initializers, ...local.initializers],
  })
  checkSelfContained(block)
  return block
}

function localTypes(graph: Graph): Parameters<typeof localValues>[0] {
  const type = (name: string): 'i32' | 'i64' | 'f32' => {
    const found = graph.inputs.find((input) => input.name === name)?.type
    return found === 'i32' || found === 'f32' ? found : 'i64'
  }
  return { positions: type('position_ids'), mask: type('attention_mask') }
}

function checkSelfContained(block: Graph): void {
  const known = new Set(block.inputs.map((input) => input.name))
  for (const initializer of block.initializers) known.add(initializer.name)
  for (const node of block.nodes) {
    for (const input of node.inputs) {
      if (input === '' || known.has(input)) continue
      throw new CrowdError(
        'model-unsupported',
        `${describeNode(node)} in ${block.name} reads ${input} from outside the block.`,
      )
    }
    for (const output of node.outputs) known.add(output)
  }
  const missing = block.outputs.find((output) => !known.has(output.name))
  if (missing) {
    throw new CrowdError('model-unsupported', `${block.name} does not make ${missing.name}.`)
  }
}
