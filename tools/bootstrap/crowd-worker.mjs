#!/usr/bin/env node
// @ts-check
import { ensureBuilt, ensureInstalled, runMain } from './setup.mjs'

await runMain(async () => {
  await ensureInstalled()
  await ensureBuilt()
  await import('../../dist/sdk/crowd-worker/main.node.js')
})
