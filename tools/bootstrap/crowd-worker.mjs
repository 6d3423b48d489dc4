#!/usr/bin/env node
// @ts-check
import process from 'node:process'

process.stderr.write(
  'crowd-worker: comes with the headless worker; until then open the join URL in a browser tab.\n',
)
process.exitCode = 1
