// Loaded into a host process before it starts: notes each request for a piece in a file, one line with
// its path and who asks.
import { subscribe } from 'node:diagnostics_channel'
import { appendFileSync } from 'node:fs'
import process from 'node:process'

const file = process.env.PIECE_REQUESTS ?? ''

subscribe('http.server.request.start', ({ request }) => {
  if (!request.url.includes('/pieces/')) return
  appendFileSync(file, `${request.url} ${request.headers['user-agent'] ?? ''}\n`)
})
