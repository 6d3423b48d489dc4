// @ts-check
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import process from 'node:process'

/**
 * Flags for every Chromium that the tests start: no call home, raw host candidates instead of multicast
 * names, and the software WebGPU adapter.
 */
export const BROWSER_FLAGS = Object.freeze([
  '--no-sandbox',
  '--disable-quic',
  '--no-first-run',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
  '--disable-features=WebRtcHideLocalIpsWithMdns',
  '--enable-unsafe-webgpu',
  '--use-webgpu-adapter=swiftshader',
])

/** Path of a Chromium-family browser on this machine, or null. `CROWDINFER_BROWSER` names one by hand. */
export function findBrowser() {
  const named = process.env['CROWDINFER_BROWSER']
  if (named !== undefined && named !== '') return existsSync(named) ? named : null
  return candidates().find((path) => existsSync(path)) ?? null
}

function candidates() {
  if (process.platform === 'darwin') {
    return ['Chromium', 'Google Chrome', 'Microsoft Edge'].map(
      (app) => `/Applications/${app}.app/Contents/MacOS/${app}`,
    )
  }
  if (process.platform === 'win32') {
    const roots = ['PROGRAMFILES', 'PROGRAMFILES(X86)', 'LOCALAPPDATA'].map(
      (key) => process.env[key] ?? '',
    )
    const apps = [
      'Chromium/Application/chrome.exe',
      'Google/Chrome/Application/chrome.exe',
      'Microsoft/Edge/Application/msedge.exe',
    ]
    return roots.filter((root) => root !== '').flatMap((root) => apps.map((app) => join(root, app)))
  }
  return [
    'chromium',
    'chromium-browser',
    'google-chrome',
    'google-chrome-stable',
    'microsoft-edge',
  ].flatMap((name) => [`/usr/bin/${name}`, `/usr/local/bin/${name}`, `/snap/bin/${name}`])
}
