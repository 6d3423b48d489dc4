import { spawn } from 'node:child_process'

/** Opens a URL in the browser of this machine's user. @returns false when that isn't possible here */
export function openBrowser(url: string, platform: NodeJS.Platform): Promise<boolean> {
  const [command, args] = opener(url, platform)
  return new Promise((resolve) => {
    const child = spawn(command, args, { stdio: 'ignore', detached: true })
    child.once('error', () => resolve(false))
    child.once('spawn', () => {
      child.unref()
      resolve(true)
    })
  })
}

function opener(url: string, platform: NodeJS.Platform): [string, string[]] {
  if (platform === 'darwin') return ['open', [url]]
  // Not through cmd: it would take the URL's special characters as its own.
  if (platform === 'win32') return ['rundll32', ['url.dll,FileProtocolHandler', url]]
  return ['xdg-open', [url]]
}
