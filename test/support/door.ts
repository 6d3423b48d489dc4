import { once } from 'node:events'
import { connect, createServer, type AddressInfo, type Socket } from 'node:net'

/** A device's own way to the host, over TCP, that a test can close. */
export type Door = {
  readonly address: string
  readonly port: number
  /** Ends every connection at once; new ones are let in. */
  drop(): void
  /** Nothing passes any more and nobody is told, as behind a router that lost its line. */
  block(): void
  /** Lets everything pass again; what stood still meanwhile is cut. */
  unblock(): void
  close(): Promise<void>
}

type Passage = { readonly inner: Socket; readonly outer: Socket }

export async function openDoor(hostPort: number, address = '127.0.0.1'): Promise<Door> {
  const passages = new Set<Passage>()
  let isBlocked = false
  const server = createServer((outer) => {
    const inner = connect(hostPort, '127.0.0.1')
    const passage = { inner, outer }
    passages.add(passage)
    const end = (): void => {
      // Behind a blocked door nobody hears of the other's end.
      if (isBlocked) return
      cut(passage)
    }
    for (const socket of [inner, outer]) {
      socket.setNoDelay(true)
      socket.on('error', end).on('close', end)
    }
    inner.pipe(outer, { end: false })
    outer.pipe(inner, { end: false })
    inner.on('end', end)
    outer.on('end', end)
    if (isBlocked) stop(passage)
  })

  function stop({ inner, outer }: Passage): void {
    for (const socket of [inner, outer]) socket.unpipe().pause()
  }

  function cut(passage: Passage): void {
    passages.delete(passage)
    passage.inner.destroy()
    passage.outer.destroy()
  }

  const drop = (): void => {
    for (const passage of [...passages]) cut(passage)
  }
  server.listen(0, address)
  await once(server, 'listening')
  return {
    address,
    // Cast: a server that listens on TCP has an address of this form.
    port: (server.address() as AddressInfo).port,
    drop,
    block() {
      isBlocked = true
      for (const passage of passages) stop(passage)
    },
    unblock() {
      if (!isBlocked) return
      isBlocked = false
      drop()
    },
    async close() {
      isBlocked = false
      drop()
      if (!server.listening) return
      server.close()
      await once(server, 'close')
    },
  }
}
