import { openSwarm } from '../../sdk/index.browser.ts'
import { mountPage } from '../ui/mount-page.ts'
import { readAddress } from '../ui/page-address.ts'
import { createSwarmView } from '../ui/swarm-view.svelte.ts'
import App from './App.svelte'

const { secret } = readAddress(location.hash)
mountPage(App, { view: createSwarmView(openSwarm({ secret, role: 'watcher' })), secret })
