import { execFileSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

/** A network on this machine in which each device has a namespace of its own: ways between them can really be cut. */
export type Lan = {
  /** Where devices reach what listens in this process. */
  readonly hostAddress: string
  readonly places: readonly LanPlace[]
  /** From now on nothing passes between the two, either way, and nobody is told; the host reaches both. */
  cut(a: LanPlace, b: LanPlace): void
  heal(a: LanPlace, b: LanPlace): void
  /** A file that runs a program in a place, for whoever takes nothing but a path. */
  launcherFile(place: LanPlace, program: string): string
  close(): void
}

/** Where a device lives. */
export type LanPlace = {
  readonly namespace: string
  readonly address: string
}

/** Nobody has this hardware address: what is sent to it is lost, as on a broken way. */
const NOWHERE = '02:00:00:00:00:fe'

/** @throws Error elsewhere than on Linux with the right to make networks */
export function openLan(devices: number): Lan {
  const id = `ci${process.pid % 100_000}`
  const subnet = `10.213.${process.pid % 256}`
  const hostAddress = `${subnet}.1`
  const bridge = `${id}b`
  const folder = mkdtempSync(join(tmpdir(), 'crowdinfer-lan-'))
  const places = Array.from({ length: devices }, (_, index) => ({
    namespace: `${id}n${index}`,
    address: `${subnet}.${index + 10}`,
  }))

  function openPlace({ namespace, address }: LanPlace): void {
    const outer = `${namespace}o`
    ip('netns', 'add', namespace)
    ip('link', 'add', outer, 'type', 'veth', 'peer', 'name', 'eth0', 'netns', namespace)
    ip('link', 'set', outer, 'master', bridge, 'up')
    ip('-n', namespace, 'addr', 'add', `${address}/24`, 'dev', 'eth0')
    ip('-n', namespace, 'link', 'set', 'eth0', 'up')
    ip('-n', namespace, 'link', 'set', 'lo', 'up')
    // Chromium tells others of the address only that leads out.
    ip('-n', namespace, 'route', 'add', 'default', 'via', hostAddress)
  }

  function close(): void {
    // The ends of its links go with a namespace.
    for (const { namespace } of places) ipIfThere('netns', 'del', namespace)
    ipIfThere('link', 'del', bridge)
    rmSync(folder, { recursive: true, force: true })
  }

  try {
    ip('link', 'add', bridge, 'type', 'bridge')
    ip('addr', 'add', `${hostAddress}/24`, 'dev', bridge)
    ip('link', 'set', bridge, 'up')
    for (const place of places) openPlace(place)
  } catch (error) {
    close()
    throw error
  }
  return {
    hostAddress,
    places,
    cut(a, b) {
      for (const [from, to] of bothWays(a, b)) {
        const lost = ['lladdr', NOWHERE, 'nud', 'permanent', 'dev', 'eth0']
        ip('-n', from.namespace, 'neigh', 'replace', to.address, ...lost)
      }
    },
    heal(a, b) {
      for (const [from, to] of bothWays(a, b))
        ipIfThere('-n', from.namespace, 'neigh', 'del', to.address, 'dev', 'eth0')
    },
    launcherFile(place, program) {
      const path = join(folder, place.namespace)
      const command = [...launcherOf(place), program].map((word) => `'${word}'`).join(' ')
      writeFileSync(path, `#!/bin/sh\nexec ${command} "$@"\n`, { mode: 0o755 })
      return path
    },
    close,
  }
}

/** What runs a command in a place when it stands before it. */
export function launcherOf({ namespace }: LanPlace): readonly string[] {
  return ['ip', 'netns', 'exec', namespace]
}

function bothWays(a: LanPlace, b: LanPlace): readonly (readonly [LanPlace, LanPlace])[] {
  return [
    [a, b],
    [b, a],
  ]
}

function ip(...args: readonly string[]): void {
  execFileSync('ip', args, { stdio: ['ignore', 'ignore', 'pipe'] })
}

function ipIfThere(...args: readonly string[]): void {
  try {
    ip(...args)
  } catch {
    // It was never made, or is gone already.
  }
}
