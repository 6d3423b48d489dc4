import type { DownloadTiming } from '../storage/download.ts'

/** Something that takes a while, in words, for whoever looks at a terminal. */
export type HubNotice = (line: string) => void

export type HubOptions = {
  /** E.g. `https://huggingface.co/`, or a mirror that answers alike. */
  readonly hubUrl: URL
  /** Goes to the hub's own origin only; null = anonymous. */
  readonly token: string | null
  readonly fetch: typeof globalThis.fetch
  readonly timing: DownloadTiming
  readonly notice?: HubNotice
}

/** A person's wish for the requests that follow it. */
export type HubCall = { readonly signal: AbortSignal }
