import { CrowdError } from '../errors.ts'
import type { Graph, Initializer } from '../graph/graph.ts'
import { DATA_LOCATION } from './graph-builder.ts'
import type { WeightRecipe, WeightRecipes } from './weight-recipe.ts'

/** Every tensor starts at a multiple of this, so that typed views need no copy. */
const ALIGNMENT = 64

/** A weight and its place in the data of a block. */
export type PlacedWeight = {
  readonly recipe: WeightRecipe
  readonly offset: number
  readonly length: number
}

export type WeightLayout = {
  /** The given constants, with their places filled in. */
  readonly initializers: readonly Initializer[]
  /** In the order of their offsets; between them are zeros. */
  readonly weights: readonly PlacedWeight[]
  readonly bytes: number
}

/** Lays external constants one after another. Inline ones stay as they are. */
export function layoutWeights(
  initializers: readonly Initializer[],
  recipes: WeightRecipes,
): WeightLayout {
  const weights: PlacedWeight[] = []
  let end = 0
  const placed = initializers.map((initializer): Initializer => {
    if (initializer.data.kind === 'inline') return initializer
    const recipe = recipes.get(initializer.name)
    if (!recipe) {
      throw new CrowdError('internal', `No recipe for the weight ${initializer.name}.`)
    }
    const { length } = initializer.data
    const offset = Math.ceil(end / ALIGNMENT) * ALIGNMENT
    end = offset + length
    weights.push({ recipe, offset, length })
    return { ...initializer, data: { ...initializer.data, location: DATA_LOCATION, offset } }
  })
  return { initializers: placed, weights, bytes: end }
}

/** The same for a graph; what `isFirst` selects is laid first. */
export function layoutGraph(
  graph: Graph,
  recipes: WeightRecipes,
  isFirst: (recipe: WeightRecipe) => boolean = () => false,
): { readonly graph: Graph; readonly layout: WeightLayout } {
  const rank = ({ name }: Initializer): number => {
    const recipe = recipes.get(name)
    return recipe && isFirst(recipe) ? 0 : 1
  }
  const ordered = graph.initializers.toSorted((a, b) => rank(a) - rank(b))
  const layout = layoutWeights(ordered, recipes)
  return { graph: { ...graph, initializers: layout.initializers }, layout }
}
