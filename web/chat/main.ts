import { openSwarm } from '../../sdk/index.browser.ts'
import { mountPage } from '../ui/mount-page.ts'
import { readAddress } from '../ui/page-address.ts'
import App from './App.svelte'
import { createChat } from './chat.svelte.ts'

const address = readAddress(location.hash)
const connection = openSwarm({
  secret: address.secret,
  role: 'asker',
  ...(address.name === '' ? {} : { name: address.name }),
})
const chat = createChat({ connection, now: () => performance.now() })
// The ring must not go on computing for a page that is gone.
window.addEventListener('pagehide', () => chat.stop())
mountPage(App, { chat, secret: address.secret })
