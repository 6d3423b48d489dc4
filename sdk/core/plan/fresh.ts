import type { BlockRange } from '../model/block-range.ts'
import { layersIn, type PlanDevice } from './device.ts'
import { layerCap, longestFrom, type PlanContext } from './fit.ts'

type FreshStage = { readonly device: PlanDevice; readonly range: BlockRange }

/** Up to this many devices every order is tried before a swarm is called too small. */
const PERMUTED_DEVICES = 6

/**
 * A chain for the whole model from nothing: as few stages as possible, on the fastest devices that allow
 * it, each device near what it held or stored before. null when the devices can't cover the model.
 */
export function freshChain(
  context: PlanContext,
  devices: readonly PlanDevice[],
): readonly FreshStage[] | null {
  const rooms = new Map(devices.map((device) => [device, room(context, device)]))
  const roomOf = (device: PlanDevice): number => rooms.get(device) ?? 0
  const faster = fasterIn(context)
  const roomiest = [...devices].sort(
    (a, b) => Number(a.hidden) - Number(b.hidden) || roomOf(b) - roomOf(a) || faster(a, b),
  )
  let layers = 0
  for (const [index, device] of roomiest.entries()) {
    layers += roomOf(device)
    if (layers < context.model.layerCount) continue
    const chain = arrange(context, roomiest.slice(0, index + 1))
    if (chain) return speedUp(context, chain, roomiest)
  }
  return devices.length <= PERMUTED_DEVICES ? anyOrder(context, roomiest) : null
}

/** Blocks from the first layer on that fit, as a measure of size; ties in memory beyond the cap don't count. */
function room(context: PlanContext, device: PlanDevice): number {
  const range = longestFrom(context, device, 1, {
    limit: context.blockCount,
    layers: context.maxLayers,
  })
  return range === null ? 0 : layersIn(range, context.model.layerCount)
}

function fasterIn(context: PlanContext): (a: PlanDevice, b: PlanDevice) => number {
  return (a, b) => context.msPerLayer(a) - context.msPerLayer(b) || (a.peer < b.peer ? -1 : 1)
}

/** Tries the orders in which the devices are most likely to fit: as they stand, fastest first, smallest last. */
function arrange(context: PlanContext, devices: readonly PlanDevice[]): FreshStage[] | null {
  const homes = new Map(devices.map((device) => [device, home(context, device)]))
  const faster = fasterIn(context)
  const settled = [...devices].sort(
    (a, b) => (homes.get(a) ?? 0) - (homes.get(b) ?? 0) || faster(a, b),
  )
  const orders = [settled, [...devices].sort(faster), devices, [...devices].reverse()]
  for (const order of orders) {
    const chain = tile(context, order)
    if (chain) return chain
  }
  return null
}

/** Where on the chain a device belongs: its present range, else where its stored pieces begin. */
function home(context: PlanContext, device: PlanDevice): number {
  return device.range?.start ?? context.stored.starts(device)[0] ?? context.blockCount
}

/** Walks from block 0; at each border the first device in the order that can hold the next block goes on. */
function tile(context: PlanContext, order: readonly PlanDevice[]): FreshStage[] | null {
  const chain: FreshStage[] = []
  const waiting = [...order]
  let at = 0
  while (at < context.blockCount) {
    const left = layersIn({ start: at, end: context.blockCount }, context.model.layerCount)
    const bounds = { limit: context.blockCount, layers: layerCap(context, left, chain.length) }
    let stage: FreshStage | null = null
    for (const [index, device] of waiting.entries()) {
      const range = longestFrom(context, device, at, bounds)
      if (range === null) continue
      stage = { device, range }
      waiting.splice(index, 1)
      break
    }
    if (stage === null) return null
    chain.push(stage)
    at = stage.range.end
  }
  return chain
}

/** Replaces the slowest devices by faster ones outside the chain while it still covers everything. */
function speedUp(
  context: PlanContext,
  start: FreshStage[],
  all: readonly PlanDevice[],
): FreshStage[] {
  let chain = start
  const faster = fasterIn(context)
  const slowestFirst = (a: PlanDevice, b: PlanDevice): number =>
    Number(b.hidden) - Number(a.hidden) || context.msPerLayer(b) - context.msPerLayer(a)
  const spare = all.filter((device) => !chain.some((stage) => stage.device === device)).sort(faster)
  for (const device of spare) {
    if (device.hidden) continue
    const slowest = chain.map((stage) => stage.device).sort(slowestFirst)[0]
    if (!slowest || (!slowest.hidden && faster(slowest, device) < 0)) break
    const members = chain.map((stage) => (stage.device === slowest ? device : stage.device))
    const better = arrange(context, members)
    if (better && better.length <= chain.length) chain = better
  }
  return chain
}

function anyOrder(context: PlanContext, devices: readonly PlanDevice[]): FreshStage[] | null {
  for (const order of permutations(devices)) {
    const chain = tile(context, order)
    if (chain) return chain
  }
  return null
}

function* permutations<T>(items: readonly T[]): Generator<T[]> {
  if (items.length === 0) yield []
  for (const [index, item] of items.entries())
    for (const rest of permutations([...items.slice(0, index), ...items.slice(index + 1)]))
      yield [item, ...rest]
}
