import { openSwarm } from '../../sdk/index.browser.ts'
import { mountPage } from '../ui/mount-page.ts'
import { pageLink, readAddress } from '../ui/page-address.ts'
import { createSafeStorage } from '../ui/safe-storage.ts'
import { createSwarmView } from '../ui/swarm-view.svelte.ts'
import App from './App.svelte'
import { createModelChoice } from './model-choice.svelte.ts'
import { createModelsApi } from './models-api.ts'

const { secret, adminToken } = readAddress(location.hash)
const kept = createSafeStorage(() => sessionStorage)
const TOKEN = 'crowdinfer-admin'
if (adminToken !== '') {
  kept.set(TOKEN, adminToken)
  // Whoever copies the address from now on gives the operator's right to nobody.
  history.replaceState(null, '', pageLink('dashboard', secret))
}
const proofs = { adminToken: kept.get(TOKEN) ?? '', secret }
mountPage(App, {
  view: createSwarmView(openSwarm({ secret, role: 'watcher' })),
  secret,
  choice: createModelChoice(createModelsApi(proofs, (input, init) => fetch(input, init))),
})
