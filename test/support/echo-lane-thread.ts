/// The entry script of a thread that sends every frame back on its lane.
import type { LaneNews, LaneOrder } from '../../sdk/net/lane-messages.ts'
import { createLaneHost, type LaneHost } from '../../sdk/net/lane-host.ts'
import { createSystemTimers } from '../../sdk/net/timers.ts'
import { portEnd } from '../../sdk/port-end.browser.ts'

onmessage = ({ ports }) => {
  const [port] = ports
  if (port === undefined) throw new Error('no port')
  const timers = createSystemTimers()
  const host: LaneHost = createLaneHost({
    end: portEnd<LaneNews, LaneOrder>(port),
    now: timers.now,
    later: timers.after,
    onFrame(peer, frame) {
      // The test names the peer by the number of its lane.
      void host.send(Number(peer), frame.slice())
    },
  })
}
