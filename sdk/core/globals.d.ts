// The few web-standard globals that the pure core may use. Everything else must be passed in.
declare class TextEncoder {
  encode(text?: string): Uint8Array<ArrayBuffer>
}
declare class TextDecoder {
  constructor(label?: string, options?: { fatal?: boolean; ignoreBOM?: boolean })
  decode(bytes?: ArrayBufferView | ArrayBuffer, options?: { stream?: boolean }): string
}
