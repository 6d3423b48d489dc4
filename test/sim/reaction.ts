import type { SimSwarm } from './sim-swarm.ts'

export type Reaction = {
  readonly at: number
  /** Tokens that the host had of the answer. */
  readonly tokens: number
}

/** Watches how the host treats answers; made before they are asked. */
export type ReactionWatch = {
  /** From now on: something happened to this answer. */
  arm(key: string): void
  /** When the host first treated it otherwise, by ending it with an error or giving it another route. */
  reaction(): Reaction | null
}

export function watchReactions(sim: SimSwarm): ReactionWatch {
  const tokens = new Map<string, number>()
  let armed: { readonly key: string; readonly epoch: number } | null = null
  let reaction: Reaction | null = null
  sim.onEvent((event, { requests }) => {
    if (event.kind === 'token-chosen') tokens.set(event.key, (tokens.get(event.key) ?? 0) + 1)
    const request = armed === null ? undefined : requests.get(armed.key)
    if (armed === null || request === undefined || reaction !== null) return
    const isGood = request.phase === 'running' || request.phase === 'done'
    if (isGood && request.epoch === armed.epoch) return
    reaction = { at: sim.clock.now(), tokens: tokens.get(armed.key) ?? 0 }
  })
  return {
    arm(key) {
      armed = { key, epoch: sim.host.state().requests.get(key)?.epoch ?? 0 }
    },
    reaction: () => reaction,
  }
}
