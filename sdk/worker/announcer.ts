import { CrowdError } from '../core/errors.ts'
import type { ClientMessage } from '../protocol/client-to-server.ts'
import type { ServerMessageOf } from '../protocol/server-to-client.ts'
import type { ShardStore } from '../storage/shard-store.ts'
import type { Manifest } from '../core/model/manifest.ts'
import type { Links } from './links.ts'
import type { PieceLinks } from './piece-links.ts'
import type { Sessions } from './sessions.ts'
import type { StageHolder } from './stage-holder.ts'
import type { StepMeter } from './step-meter.ts'
import { pledgeOf, type ServedModel, type WorkerState } from './worker-view.ts'

export type AnnouncerDeps = {
  readonly state: WorkerState
  readonly store: Pick<ShardStore, 'list' | 'usage'>
  readonly holder: Pick<StageHolder, 'held' | 'announce' | 'drop'>
  readonly links: Pick<Links, 'announce' | 'closeAll'>
  readonly pieceLinks: Pick<PieceLinks, 'closeAll'>
  readonly sessions: Pick<Sessions, 'park' | 'dropAll'>
  readonly meter: StepMeter
  tell(message: ClientMessage): void
  loadManifest(path: string): Promise<Manifest>
  changed(): void
}

/** What a worker tells the host about itself, beside its sessions. */
export type Announcer = {
  /** After every (re)connect: what this device is and holds, in full. @throws CrowdError from loadManifest, model-invalid */
  welcomed(welcome: ServerMessageOf<'welcome'>): Promise<void>
  /** Lets go of the former model and says what it has of this one. @throws CrowdError from loadManifest, model-invalid */
  modelChanged(served: ServedModel): Promise<void>
  /** What it gives, again. */
  pledge(): Promise<void>
  /** What it gives and whom it is linked with, to a host that may have missed it. */
  again(): void
  /** How fast it is, when it computed something since the last time; now and then the links' round trips. */
  stats(): void
  /** Looks at the store again, for the page. */
  storage(): Promise<void>
}

/** Round trips change slowly; the dashboard needs no more. */
const LINKS_EVERY = 5

export function createAnnouncer(deps: AnnouncerDeps): Announcer {
  const { state, store, holder, links, sessions, meter, tell, changed } = deps
  /** What the host heard last, in short. */
  let told = ''
  let ticks = 0

  async function pledge(): Promise<void> {
    const message = pledgeOf(state, await store.list().catch(() => []))
    if (message !== null) tell(message)
    changed()
  }

  /** Reads the manifest of what is served, unless it is here. False: meanwhile another model is. */
  async function follow({ model, revision, manifestPath }: ServedModel): Promise<boolean> {
    const served = { model, revision, manifestPath }
    state.served = served
    if (state.manifest?.id === model && state.manifest.revision === revision) return true
    const manifest = await deps.loadManifest(manifestPath)
    if (state.served !== served) return false
    // Loading it would compute another model's numbers under this one's name.
    if (manifest.revision !== revision)
      throw new CrowdError(
        'model-invalid',
        `${manifestPath} is not the build of ${model} that the host serves`,
      )
    if (state.manifest !== null) holder.drop()
    state.manifest = manifest
    return true
  }

  return {
    pledge,
    again() {
      void pledge()
      links.announce()
    },
    async modelChanged(served) {
      if (!(await follow(served))) return
      await sessions.dropAll()
      await pledge()
    },
    async welcomed(welcome) {
      state.peer = welcome.peer
      // The host orders new links. What is cached of its sessions is kept a while: it may open them again.
      links.closeAll('the connection to the host was made anew')
      deps.pieceLinks.closeAll('the connection to the host was made anew')
      sessions.park()
      const former = state.manifest
      if (!(await follow(welcome))) return
      if (state.manifest !== former) await sessions.dropAll()
      await pledge()
      holder.announce()
    },
    stats() {
      ticks += 1
      if (ticks % LINKS_EVERY === 0) links.announce()
      const held = holder.held()
      const { steps, tokens, stepMs } = meter
      if (held === null || (steps === 0 && stepMs === null)) return
      const { assignment } = held
      // The host knows nothing of a new order's speed, though the layers are the same.
      const news = `${assignment} ${steps} ${stepMs}`
      if (news === told) return
      told = news
      tell({ kind: 'stage-stats', assignment, steps, tokens, stepMs })
    },
    async storage() {
      try {
        state.storage = await store.usage()
      } catch {
        // The page then shows no numbers for storage; pieces themselves report their own failures.
        state.storage = null
      }
      changed()
    },
  }
}
