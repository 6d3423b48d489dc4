/** What the browser tells about itself and this page; read once, so that tests can present another one. */
export type Device = {
  readonly label: string
  readonly userAgent: string
  /** False on plain http to another machine: no WebGPU, no threads, no web crypto. */
  readonly secureContext: boolean
  /** False without the isolation headers: one WASM thread. */
  readonly crossOriginIsolated: boolean
  readonly cores: number
  readonly memoryGb: number | undefined
  readonly webGpu: boolean
}

export function readDevice(): Device {
  return {
    label: deviceLabel(navigator.userAgent),
    userAgent: navigator.userAgent,
    secureContext: window.isSecureContext,
    crossOriginIsolated: window.crossOriginIsolated,
    cores: navigator.hardwareConcurrency,
    memoryGb: memoryGb(),
    webGpu: 'gpu' in navigator,
  }
}

/** `Android tab`, `Linux tab`: what a device is called until its owner names it. */
export function deviceLabel(userAgent: string): string {
  const known = ['Android', 'iPhone', 'iPad', 'Windows', 'Macintosh', 'CrOS', 'Linux']
  const found = known.find((word) => userAgent.includes(word)) ?? 'Browser'
  const names: Record<string, string> = { Macintosh: 'Mac', CrOS: 'Chromebook' }
  return `${names[found] ?? found} tab`
}

function memoryGb(): number | undefined {
  if (!('deviceMemory' in navigator)) return undefined
  const value: unknown = navigator.deviceMemory
  return typeof value === 'number' ? value : undefined
}
