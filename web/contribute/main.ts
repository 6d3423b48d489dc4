import {
  createBrowserWorker,
  deleteStoredPieces,
  openSwarm,
  requestPersistence,
} from '../../sdk/index.browser.ts'
import { mountPage } from '../ui/mount-page.ts'
import { readAddress } from '../ui/page-address.ts'
import { createSafeStorage } from '../ui/safe-storage.ts'
import App from './App.svelte'
import { Contribution } from './contribution.svelte.ts'
import { readDevice } from './device.ts'
import { createDeviceTabs } from './device-tabs.ts'
import { createTabMemory } from './tab-memory.ts'

const address = readAddress(location.hash)
const device = readDevice()
const contribution = new Contribution({
  createWorker: createBrowserWorker,
  address,
  device,
  memory: createTabMemory(
    createSafeStorage(() => sessionStorage),
    createSafeStorage(() => localStorage),
  ),
  // There are no locks in an insecure context.
  tabs: createDeviceTabs(device.secureContext ? navigator.locks : undefined),
  persist: requestPersistence,
  deletePieces: deleteStoredPieces,
  build: new URL(import.meta.url).pathname,
  now: () => performance.now(),
  later(ms, task) {
    const timer = setTimeout(task, ms)
    return () => clearTimeout(timer)
  },
})

document.addEventListener('visibilitychange', () => contribution.setHidden(document.hidden))
// Page Lifecycle: in the frozen page nothing runs, no beat and no step.
document.addEventListener('freeze', () => contribution.freeze())
document.addEventListener('resume', () => contribution.thaw())
window.addEventListener('pagehide', () => contribution.hide())
window.addEventListener('pageshow', (event) => {
  // Back from the browser's page cache: the worker left when the page was put away.
  if (event.persisted) location.reload()
})

mountPage(App, {
  contribution,
  secret: address.secret,
  watchPool: () => openSwarm({ secret: address.secret, role: 'watcher' }),
})
void contribution.open()
