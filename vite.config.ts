import { svelte } from '@sveltejs/vite-plugin-svelte'
import { playwright } from '@vitest/browser-playwright'
import { fileURLToPath } from 'node:url'
import { defaultClientConditions } from 'vite'
import { defineConfig } from 'vitest/config'
import { BROWSER_FLAGS, findBrowser } from './tools/bootstrap/browser.mjs'

const here = fileURLToPath(new URL('.', import.meta.url))
const page = (name: string) => fileURLToPath(new URL(`./web/${name}.html`, import.meta.url))

/** WASM threads need cross-origin isolation. */
const isolation = {
  'Cross-Origin-Opener-Policy': 'same-origin',
  'Cross-Origin-Embedder-Policy': 'require-corp',
}

/** ORT's own condition keeps its WASM out of the bundle: inlined, threads hang inside a worker chunk. */
const ortConditions = ['onnxruntime-web-use-extern-wasm', ...defaultClientConditions]

export default defineConfig({
  root: 'web',
  cacheDir: fileURLToPath(new URL('./node_modules/.vite', import.meta.url)),
  publicDir: false,
  plugins: [svelte({ configFile: false })],
  resolve: { conditions: ortConditions },
  worker: { format: 'es', rolldownOptions: { checks: { bundlerTimings: false } } },
  optimizeDeps: { exclude: ['onnxruntime-web'] },
  server: {
    headers: isolation,
    proxy: {
      '/socket.io': { target: 'http://127.0.0.1:7080', ws: true },
      '/models': 'http://127.0.0.1:7080',
      '/api': 'http://127.0.0.1:7080',
    },
  },
  preview: { headers: isolation },
  build: {
    outDir: '../dist/site',
    emptyOutDir: true,
    target: 'es2022',
    assetsInlineLimit: 0,
    rolldownOptions: {
      checks: { bundlerTimings: false },
      input: { index: page('index'), join: page('join'), dashboard: page('dashboard') },
    },
  },
  test: {
    projects: [
      {
        extends: true,
        root: here,
        test: {
          name: 'node',
          include: ['{sdk,signaling,test,web}/**/*.test.ts'],
          exclude: ['**/*.browser.test.ts', 'test/e2e/**', 'node_modules/**'],
          testTimeout: 30_000,
          // Patience, not a promise: what must be quick is measured on a clock of the test's own.
          expect: { poll: { timeout: 10_000, interval: 10 } },
          // Tests that load the runtime past our code must not report to its maker either.
          env: { ORT_DISABLE_TELEMETRY: '1' },
        },
      },
      {
        extends: true,
        root: here,
        optimizeDeps: {
          include: ['simple-peer/simplepeer.min.js', 'idb-keyval', 'socket.io-client', 'qrcode'],
        },
        server: { headers: isolation },
        test: {
          name: 'browser',
          include: ['{sdk,test,web}/**/*.browser.test.ts'],
          testTimeout: 60_000,
          browser: {
            enabled: true,
            headless: true,
            screenshotFailures: false,
            provider: playwright({
              launchOptions: {
                executablePath: findBrowser() ?? '/no-browser-found',
                args: [...BROWSER_FLAGS],
              },
            }),
            instances: [{ browser: 'chromium' }],
          },
        },
      },
      {
        extends: true,
        root: here,
        test: {
          name: 'e2e',
          include: ['test/e2e/**/*.test.ts'],
          testTimeout: 120_000,
          fileParallelism: false,
        },
      },
    ],
  },
})
