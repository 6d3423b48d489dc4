import type { SwarmSnapshot } from '../../sdk/protocol/swarm-snapshot.ts'

type Path = SwarmSnapshot['links'][number]['path']

const PATHS: Record<NonNullable<Path>, string> = {
  direct: 'direct',
  turn: 'through a TURN server',
  relay: 'relayed by the host',
  local: 'in this process',
}

/** How two devices reach each other, for people. */
export function describePath(path: Path): string {
  return path === null ? 'not known yet' : PATHS[path]
}
