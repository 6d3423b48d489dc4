import type { AskedDtype } from '../sdk/core/model/onnx/export-files.ts'

/** Flags as commander gives them. */
export type HubFlags = {
  readonly data?: string
  readonly hub?: string
  readonly tokenFile?: string
}
export type AddFlags = HubFlags & {
  readonly dtype?: AskedDtype
  readonly name?: string
  readonly context?: number
  readonly revision?: string
  readonly keepSource?: boolean
  readonly yes?: boolean
}
export type InspectFlags = HubFlags & {
  readonly dtype?: AskedDtype
  readonly context?: number
  readonly json?: boolean
}
export type ListFlags = { readonly data?: string; readonly json?: boolean }
export type RemoveFlags = { readonly data?: string; readonly yes?: boolean }
export type RecommendFlags = {
  readonly devices?: string
  readonly swarm?: string
  readonly context?: number
  readonly json?: boolean
}

/** What the commands do; loaded when one is called. */
export type ModelCommands = {
  add(source: string, flags: AddFlags): Promise<void>
  list(flags: ListFlags): Promise<void>
  inspect(model: string, flags: InspectFlags): Promise<void>
  remove(name: string, flags: RemoveFlags): Promise<void>
  verify(name: string, flags: ListFlags): Promise<void>
  recommend(flags: RecommendFlags): Promise<void>
}
