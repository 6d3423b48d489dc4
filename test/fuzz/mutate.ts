import { philox2x32 } from '../../sdk/core/sampling/random.ts'

/** Seeded whole numbers below `limit`. */
export type Draw = (limit: number) => number

export function seededDraw(seed: number): Draw {
  let count = 0
  return (limit) => {
    const [low] = philox2x32([count++, 0], seed)
    return low % Math.max(1, limit)
  }
}

/** Numbers that a careless reader allocates, multiplies or loops by. */
const EXTREMES = [0, -1, 1, 2 ** 31 - 1, 2 ** 32, 2 ** 53, 1e308, -0.5, NaN]

type Change = (bytes: Uint8Array<ArrayBuffer>, draw: Draw, head: number) => Uint8Array<ArrayBuffer>

const CHANGES: readonly Change[] = [
  function flipBits(bytes, draw, head) {
    const out = bytes.slice()
    for (let i = 0; i <= draw(8); i++) out[draw(head)]! ^= 1 << draw(8)
    return out
  },
  function truncate(bytes, draw) {
    return bytes.slice(0, draw(bytes.length))
  },
  function overwrite(bytes, draw, head) {
    const out = bytes.slice()
    const at = draw(head)
    out.fill(draw(2) === 0 ? 0xff : 0, at, at + 1 + draw(16))
    return out
  },
  function hugeCount(bytes, draw, head) {
    const out = bytes.slice()
    const at = draw(Math.max(1, Math.min(head, out.length - 8)))
    const view = new DataView(out.buffer)
    if (at + 8 <= out.length) view.setBigUint64(at, 2n ** BigInt(draw(64)) - 1n, true)
    return out
  },
  function cutOut(bytes, draw, head) {
    const at = draw(head)
    const length = 1 + draw(32)
    return new Uint8Array([...bytes.subarray(0, at), ...bytes.subarray(at + length)])
  },
  function repeat(bytes, draw, head) {
    const at = draw(head)
    const part = bytes.subarray(at, at + 1 + draw(64))
    return new Uint8Array([...bytes.subarray(0, at), ...part, ...bytes.subarray(at)])
  },
]

/** A damaged copy: bits, lengths, counts or whole runs of the first `head` bytes are wrong. */
export function mutateBytes(
  bytes: Uint8Array<ArrayBuffer>,
  draw: Draw,
  head: number,
): Uint8Array<ArrayBuffer> {
  const change = CHANGES[draw(CHANGES.length)]
  return change ? change(bytes, draw, Math.min(head, bytes.length)) : bytes
}

/** Valid JSON with one value, somewhere, replaced by one of another kind or size, or left out. */
export function mutateJson(json: unknown, draw: Draw): unknown {
  const copy: unknown = structuredClone(json)
  const places: { holder: Record<string, unknown>; key: string }[] = []
  collect(copy, places)
  const place = places[draw(places.length)]
  if (place === undefined) return null
  const others: unknown[] = [null, [], {}, '', 'x'.repeat(100_000), true, [[[]]], ...EXTREMES]
  const pick = draw(others.length + 1)
  if (pick === others.length) Reflect.deleteProperty(place.holder, place.key)
  else place.holder[place.key] = others[pick]
  return copy
}

function collect(value: unknown, places: { holder: Record<string, unknown>; key: string }[]): void {
  if (typeof value !== 'object' || value === null) return
  // Cast: objects and lists both have values under string keys.
  const holder = value as Record<string, unknown>
  // Long lists are all alike: their first entries stand for the rest.
  for (const key of Object.keys(holder).slice(0, 40)) {
    places.push({ holder, key })
    collect(holder[key], places)
  }
}
